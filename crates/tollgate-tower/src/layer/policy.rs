//! Layers of a policy.

use std::sync::Arc;
use std::time::Duration;
use tollgate::error::LimiterError;

use tollgate_http::RequestFacts;
use tollgate_policy::{FactName, FactValue, LivePolicy, PolicyClock};

use super::RateLimitLayer;
use crate::answered::Ended;
use crate::policy::{AnswerFact, ByPolicy};

impl<C: PolicyClock> RateLimitLayer<ByPolicy<C>> {
    /// The limits of a policy: several limits, all or nothing, with plans, bans and costs.
    ///
    /// It takes a `Policy`, or an `Arc<LivePolicy>` that the program keeps to reload it.
    ///
    /// ```
    /// # use http::{Request, Response};
    /// # use tower::{Layer, ServiceExt, service_fn};
    /// # async fn hello(_: Request<()>) -> Result<Response<String>, std::convert::Infallible> {
    /// #     Ok(Response::default())
    /// # }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::sync::Arc;
    /// use tollgate_policy::{LivePolicy, Policy};
    /// use tollgate_tower::RateLimitLayer;
    ///
    /// let rule = "[[rule]]\nname = 'api'\nwhen = { path = '/api/**' }\nlimit = '1/h'";
    /// let policy = Arc::new(LivePolicy::new(Policy::from_toml(rule)?));
    /// let service = RateLimitLayer::policy(Arc::clone(&policy)).layer(service_fn(hello));
    ///
    /// let get = |path| Request::get(path).body(());
    /// assert_eq!(service.clone().oneshot(get("/api/a")?).await?.status(), 200);
    /// assert_eq!(service.clone().oneshot(get("/api/b")?).await?.status(), 429);
    /// assert_eq!(service.clone().oneshot(get("/")?).await?.status(), 200);
    ///
    /// let _ = policy.reload_toml(&rule.replace("1/h", "fixed-window 2/h"))?;
    /// assert_eq!(service.clone().oneshot(get("/api/b")?).await?.status(), 200);
    /// # Ok(())
    /// # }
    /// ```
    pub fn policy(policy: impl Into<Arc<LivePolicy<C>>>) -> Self {
        let policy = policy.into();
        let mut layer = Self::of(ByPolicy {
            policy: Arc::clone(&policy),
            own: None,
            of_answers: Arc::default(),
        });
        layer.settings.policy = Some(policy);
        layer
    }

    /// Supplies facts of the program's own, such as the user. They take precedence over the
    /// request's.
    ///
    /// A fact that is `None` is missing, and never ambiguous. So do not make one from a header, a
    /// parameter or a cookie that a client can repeat: name these in the rule, or register a
    /// [resolver](tollgate_policy::PolicyBuilder::resolver), whose value is ambiguous if they are.
    ///
    /// ```
    /// # use http::{Request, Response};
    /// # use tower::{Layer, ServiceExt, service_fn};
    /// # async fn hello(_: Request<()>) -> Result<Response<String>, std::convert::Infallible> {
    /// #     Ok(Response::default())
    /// # }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use tollgate_policy::Policy;
    /// use tollgate_tower::RateLimitLayer;
    ///
    /// /// What the layer that authenticates requests found.
    /// #[derive(Clone)]
    /// struct User {
    ///     name: String,
    ///     pays: bool,
    /// }
    ///
    /// let policy = Policy::from_toml(
    ///     "[[rule]]\nname = 'user'\nkey = 'user'\nplan = { by = 'tier', paid = '100/h', free = '1/h' }",
    /// )?;
    /// let limit = RateLimitLayer::policy(policy).facts(|request, name| {
    ///     let user = request.extension::<User>()?;
    ///     match name.as_str() {
    ///         "user" => Some(user.name.as_str().into()),
    ///         "tier" => Some(if user.pays { "paid" } else { "free" }.into()),
    ///         _ => None,
    ///     }
    /// });
    /// let service = limit.layer(service_fn(hello));
    ///
    /// let of = |name: &str, pays| {
    ///     let name = name.to_owned();
    ///     Request::builder().extension(User { name, pays }).body(())
    /// };
    /// assert_eq!(service.clone().oneshot(of("ann", true)?).await?.status(), 200);
    /// assert_eq!(service.clone().oneshot(of("ann", true)?).await?.status(), 200);
    /// assert_eq!(service.clone().oneshot(of("bob", false)?).await?.status(), 200);
    /// assert_eq!(service.clone().oneshot(of("bob", false)?).await?.status(), 429);
    /// # Ok(())
    /// # }
    /// ```
    pub fn facts<F>(mut self, facts: F) -> Self
    where
        F: for<'r> Fn(&RequestFacts<'r>, &FactName) -> Option<FactValue<'r>>,
        F: Send + Sync + 'static,
    {
        self.admission.own = Some(Arc::new(facts));
        self
    }

    /// Supplies a fact of answers, which rules name in `cost.settle`. It is read at the end of the
    /// answer's body, so it may be a number that only the end of a stream says. `None` leaves the
    /// estimate as it is.
    ///
    /// ```
    /// # use http::{Request, Response};
    /// # use tower::{Layer, ServiceExt, service_fn};
    /// use std::convert::Infallible;
    /// use std::sync::Arc;
    /// use tollgate_policy::{LivePolicy, Policy};
    /// use tollgate_tower::RateLimitLayer;
    ///
    /// /// What a language model used for an answer.
    /// #[derive(Clone)]
    /// struct Tokens(u64);
    ///
    /// async fn chat(_: Request<()>) -> Result<Response<String>, Infallible> {
    ///     let mut answer = Response::new(String::from("hello"));
    ///     answer.extensions_mut().insert(Tokens(80));
    ///     Ok(answer)
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let rule = "[[rule]]\nname = 'tokens'\nlimit = '1000/h'\n\
    ///             cost = { default = 500, settle = 'tokens' }";
    /// let policy = Arc::new(LivePolicy::new(Policy::from_toml(rule)?));
    /// let limit = RateLimitLayer::policy(Arc::clone(&policy));
    /// let limit = limit.answer_fact("tokens", |ended| Some(ended.extension::<Tokens>()?.0));
    /// let answer = limit.layer(service_fn(chat)).oneshot(Request::new(())).await?;
    /// drop(answer); // after its body
    /// assert_eq!(policy.decide(&()).remaining(), Some(1000 - 80 - 500));
    /// # Ok(())
    /// # }
    /// ```
    pub fn answer_fact(
        mut self,
        name: impl Into<String>,
        fact: impl Fn(&Ended<'_>) -> Option<u64> + Send + Sync + 'static,
    ) -> Self {
        let mut facts = (*self.admission.of_answers).clone();
        facts.push((name.into().into(), Arc::new(fact) as AnswerFact));
        self.admission.of_answers = Arc::new(facts);
        self
    }

    /// Sets which requests failed, for rules that count failures or successes, and for bans of
    /// failures. Unless this says otherwise, these are the requests of [`Ended::is_failure`]: with
    /// a status of 401, 403 or 422. For a rule that names its own `failures`, those count instead.
    /// A client that goes away before its answer is not banned for it, whatever this says.
    ///
    /// ```
    /// use http::StatusCode;
    /// use tollgate_policy::Policy;
    /// use tollgate_tower::RateLimitLayer;
    ///
    /// let rule = "[[rule]]\nname = 'login'\nkey = 'client-ip'\nlimit = '5/h'\ncount = 'failures'";
    /// let policy = Policy::from_toml(rule)?;
    /// // Only 401 is a failure, and not 403 or 422.
    /// let limit = RateLimitLayer::policy(policy)
    ///     .failure_if(|ended| ended.status() == Some(StatusCode::UNAUTHORIZED));
    /// # let _ = limit;
    /// # Ok::<(), tollgate_policy::Problems>(())
    /// ```
    pub fn failure_if(mut self, test: impl Fn(&Ended<'_>) -> bool + Send + Sync + 'static) -> Self {
        self.settings.is_failure = Some(Arc::new(test));
        self
    }

    /// Lets requests wait until their policy allows them, at most this long, and at most this many
    /// at once, of all clients together.
    ///
    /// A policy has no lines: a request that waits asks again at the time that the policy said, and
    /// other requests may have been faster. So one client can take all places, and the requests of
    /// others are then refused at once, as without this method. Limits such as `leaky-queue` say
    /// how long a request that they allow has to wait. They do so without this method too.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate_policy::Policy;
    /// use tollgate_tower::RateLimitLayer;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let policy = Policy::from_toml("[[rule]]\nname = 'a'\nlimit = '100/s'")?;
    /// let limit = RateLimitLayer::policy(policy).wait(Duration::from_secs(1), 1000)?;
    /// # let _ = limit;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// If `requests` is 0, or more than a [`Concurrency`](tollgate::Concurrency) can have.
    pub fn wait(self, time: Duration, requests: u64) -> Result<Self, LimiterError> {
        self.may_wait(time, requests)
    }
}
