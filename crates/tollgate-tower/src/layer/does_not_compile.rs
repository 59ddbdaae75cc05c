//! A setting without effect does not compile.

/// A limit of all requests needs no key.
///
/// ```compile_fail,E0599
/// # fn limit() -> Result<(), tollgate::error::QuotaError> {
/// let limiter = tollgate::Limiter::token_bucket(tollgate::Quota::per_hour(1))?;
/// let limit = tollgate_tower::RateLimitLayer::shared(limiter);
/// let limit = limit.missing(tollgate_tower::MissingKey::Exempt);
/// # Ok(())
/// # }
/// ```
///
/// ```compile_fail,E0599
/// # fn limit() -> Result<(), tollgate::error::QuotaError> {
/// let limiter = tollgate::Limiter::token_bucket(tollgate::Quota::per_hour(1))?;
/// let limit = tollgate_tower::RateLimitLayer::shared(limiter);
/// let limit = limit.partitions();
/// # Ok(())
/// # }
/// ```
///
/// ```compile_fail,E0599
/// # fn limit() -> Result<(), tollgate::error::LimiterError> {
/// let places = tollgate::Concurrency::new(1)?;
/// let limit = tollgate_tower::RateLimitLayer::concurrency(places);
/// let limit = limit.missing(tollgate_tower::MissingKey::Exempt);
/// # Ok(())
/// # }
/// ```
///
/// In a policy, each rule has its own `missing`.
///
/// ```compile_fail,E0599
/// # fn limit() -> Result<(), tollgate_policy::Problems> {
/// let policy = tollgate_policy::Policy::from_toml("")?;
/// let limit = tollgate_tower::RateLimitLayer::policy(policy);
/// let limit = limit.missing(tollgate_tower::MissingKey::Exempt);
/// # Ok(())
/// # }
/// ```
struct MissingKey;

/// A concurrency gives each place back, however the request ended.
///
/// ```compile_fail,E0599
/// # fn limit() -> Result<(), tollgate::error::LimiterError> {
/// let places = tollgate::Concurrency::new(1)?;
/// let limit = tollgate_tower::RateLimitLayer::concurrency(places);
/// let limit = limit.failure_if(|ended| ended.bytes() == 0);
/// # Ok(())
/// # }
/// ```
///
/// ```compile_fail,E0599
/// # fn limit() -> Result<(), tollgate::error::LimiterError> {
/// let places = tollgate::keyed::KeyedConcurrency::new(1, 9)?;
/// let key = tollgate_tower::ByAddress::default();
/// let limit = tollgate_tower::RateLimitLayer::concurrency_by_key(places, key);
/// let limit = limit.failure_if(|ended| ended.bytes() == 0);
/// # Ok(())
/// # }
/// ```
struct FailureIf;

/// Requests of a layer may wait, unless it says that none does.
///
/// ```compile_fail,E0277
/// # use tower::Layer;
/// # fn limit() -> Result<(), tollgate::error::LimiterError> {
/// fn serves<S: tower::Service<http::Request<()>>>(_: S) {}
/// type Page = tower::util::BoxService<
///     http::Request<()>,
///     http::Response<String>,
///     std::convert::Infallible,
/// >;
///
/// let page: Page = unimplemented!();
/// let places = tollgate::Concurrency::new(1)?;
/// serves(tollgate_tower::RateLimitLayer::concurrency(places).layer(page));
/// # Ok(())
/// # }
/// ```
struct NotClone;
