//! Suggests the name that was probably meant.

/// The longest name that is compared, in bytes.
const MAX_NAME: usize = 64;
/// The most names that one name is compared with.
const MAX_NAMES: usize = 2000;
/// The most names that a message lists.
const MAX_LISTED: usize = 24;

/// Returns the known name that is nearest to this one, if it is near: about one letter in three
/// may differ. Case, `-` and `_` do not count.
pub(crate) fn nearest<'n>(name: &str, known: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    if name.len() > MAX_NAME {
        return None;
    }
    let plain = |text: &str| text.to_lowercase().replace('_', "-");
    let wanted = plain(name);
    let allowed = (name.chars().count() / 3).max(1);
    let distances = known
        .take(MAX_NAMES)
        .filter(|known| known.len() <= MAX_NAME)
        .map(|known| (strsim::damerau_levenshtein(&wanted, &plain(known)), known));
    distances
        .filter(|(distance, known)| *distance <= allowed && *distance < known.chars().count())
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, known)| known)
}

/// Ends a message about an unknown name: the nearest known name, and all of them.
pub(crate) fn known_names<'n>(name: &str, known: impl Iterator<Item = &'n str> + Clone) -> String {
    let count = known.clone().count();
    let mut message = match (nearest(name, known.clone()), count) {
        (Some(near), _) => format!("; did you mean `{near}`? Known: "),
        (None, 0) => String::from("; none is known"),
        (None, _) => String::from("; known: "),
    };
    let listed: Vec<&str> = known.take(MAX_LISTED).collect();
    message.push_str(&listed.join(", "));
    if count > MAX_LISTED {
        message.push_str(&format!(", and {} more", count - MAX_LISTED));
    }
    message
}
