//! Explains a request.

use http::{HeaderName, HeaderValue, Method, StatusCode, Uri};
use tollgate_http::DescribedRequest;
use tollgate_page::{Cell, Column, Html, table};
use tollgate_policy::explain::Explained;

use crate::admin::fields::{Fields, Refused};
use crate::service::{Answer, Service};

pub(in crate::admin) fn answer(service: &Service, body: &[u8]) -> Result<Answer, Refused> {
    let policy = service.policy.load();
    let explanation = described(body)?.explain(policy.file());
    let explanation = explanation.map_err(|error| {
        Refused::new(StatusCode::UNPROCESSABLE_ENTITY, &error)
            .of("facts")
            .knowing(error.known)
    })?;
    let mut html = Html::new();
    html.raw("<p>In short: ")
        .text(&explanation.summary)
        .raw(".</p>\n");
    if !explanation.rules.is_empty() {
        let columns = Explained::COLUMNS.map(Column::text);
        let row = |rule: &Explained| rule.cells().map(Cell::from).into();
        let rows: Vec<Vec<Cell>> = explanation.rules.iter().map(row).collect();
        html.push(table("What each rule does", &columns, &rows));
    }
    Ok(super::part(html))
}

fn described(body: &[u8]) -> Result<DescribedRequest, Refused> {
    let fields = Fields::read(body, &["method", "url", "from", "headers", "facts"])?;
    let refused = |field: &str, must: &str| {
        Refused::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            format_args!("{field} must be {must}"),
        )
        .of(field)
    };
    let method = fields.text("method")?.parse::<Method>();
    let method = method.map_err(|_| refused("method", "a method, such as GET"))?;
    let url = fields.text("url")?.parse::<Uri>().ok();
    let url = url.filter(|url| url.path().starts_with('/'));
    let url = url.ok_or_else(|| refused("url", "a path such as /a?b=1, or a whole URL"))?;
    let mut request = DescribedRequest::new(method, url);
    match fields.text("from")?.trim() {
        "" => {}
        from => {
            let address = from.parse();
            let address = address.map_err(|_| refused("from", "an address without a port"))?;
            request = request.from_address(address);
        }
    }
    for line in fields
        .texts("headers")?
        .into_iter()
        .filter(|line| !line.trim().is_empty())
    {
        let must = "lines of NAME: VALUE, as in `x-api-key: k1`";
        let header = line.split_once(':').and_then(|(name, value)| {
            let name = name.trim().parse::<HeaderName>().ok()?;
            Some((name, HeaderValue::from_str(value.trim()).ok()?))
        });
        let (name, value) = header.ok_or_else(|| refused("headers", must))?;
        request = request.header(name, value);
    }
    for line in fields
        .texts("facts")?
        .into_iter()
        .filter(|line| !line.trim().is_empty())
    {
        request = match line.trim().split_once('=') {
            Some((name, value)) => request.fact(name.trim(), Some(value.trim())),
            None => request.fact(line.trim(), None),
        };
    }
    Ok(request)
}
