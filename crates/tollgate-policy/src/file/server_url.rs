//! The URL of a server of Redis or Valkey, as far as a policy needs to know it.
//!
//! A client reads the rest when it connects. Messages about a URL never contain it, because it may
//! have a password.

/// How the URL of a server begins.
const SERVERS: [&str; 4] = ["redis", "rediss", "valkey", "valkeys"];
/// How the URL of a socket begins.
const SOCKETS: [&str; 3] = ["unix", "redis+unix", "valkey+unix"];

const SCHEME: &str = "must be a URL that begins with redis://, rediss://, valkey://, valkeys:// or \
                      unix://";
const HOST: &str = "must have a host, as in \"redis://10.0.0.5:6379\"";
const SOCKET: &str = "must have the path of a socket, as in \"unix:///run/redis.sock\"";

/// Checks that a URL has the scheme of a server and a host, or those of a socket and a path.
///
/// # Errors
///
/// What the URL must be.
pub(crate) fn check(url: &str) -> Result<(), String> {
    let (scheme, rest) = parts(url).ok_or(SCHEME)?;
    let has_scheme = |schemes: &[&str]| schemes.iter().any(|it| scheme.eq_ignore_ascii_case(it));
    if has_scheme(&SERVERS) {
        let (_, host) = authority(rest).ok_or(HOST)?;
        let host = match host.strip_prefix('[') {
            Some(address) => address.split(']').next(),
            None => host.split(':').next(),
        };
        return match host {
            None | Some("") => Err(HOST.into()),
            Some(_) => Ok(()),
        };
    }
    if has_scheme(&SOCKETS) {
        let path = match rest.strip_prefix("//") {
            Some(path) => path.strip_prefix("localhost").unwrap_or(path),
            None => rest,
        };
        return match path.starts_with('/') {
            true => Ok(()),
            false => Err(SOCKET.into()),
        };
    }
    Err(SCHEME.into())
}

/// Returns whether a URL has a password: that of its user, or the parameter `pass` of a socket.
pub(crate) fn has_password(url: &str) -> bool {
    let Some((_, rest)) = parts(url) else {
        return false;
    };
    let (user, _) = authority(rest).unwrap_or_default();
    let of_user = user.split_once(':').map(|(_, password)| password);
    let (rest, _) = rest.split_once('#').unwrap_or((rest, ""));
    let (_, query) = rest.split_once('?').unwrap_or_default();
    let of_socket = query.split('&').map(|pair| pair.strip_prefix("pass="));
    let mut passwords = of_socket.flatten().chain(of_user);
    passwords.any(|password| !password.is_empty())
}

/// Splits a URL at the end of its scheme. Clients skip what encloses a URL, such as the end of the
/// line in a variable.
fn parts(url: &str) -> Option<(&str, &str)> {
    let url = url.trim_matches(|c: char| c <= ' ');
    url.split_once(':')
}

/// Returns the user, with the password, and the host, with the port.
fn authority(rest: &str) -> Option<(&str, &str)> {
    let rest = rest.strip_prefix("//")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    Some(authority.rsplit_once('@').unwrap_or(("", authority)))
}
