//! User names from /etc/passwd. Directory services are not queried: that may take seconds.

use std::collections::HashMap;
use std::sync::OnceLock;

use crate::escape::Foreign;

/// The user's name, if /etc/passwd has it.
pub(crate) fn name_of(uid: u32) -> Option<Foreign> {
    static NAMES: OnceLock<HashMap<u32, Foreign>> = OnceLock::new();
    let read = || parse(&std::fs::read_to_string("/etc/passwd").unwrap_or_default());
    NAMES.get_or_init(read).get(&uid).cloned()
}

/// Numbers and names of a file like /etc/passwd.
pub fn parse(passwd: &str) -> HashMap<u32, Foreign> {
    let user = |line: &str| {
        let mut fields = line.split(':');
        let name = fields.next().filter(|name| !name.is_empty())?;
        Some((fields.nth(1)?.parse().ok()?, name.into()))
    };
    // The first entry of an id counts, as in libc.
    passwd.lines().rev().filter_map(user).collect()
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn the_first_name_of_a_number_counts() {
        let names = parse("root:x:0:0::/root:/bin/sh\ntoor:x:0:0::/:\n\nbroken\nann:x:1000:1000:::\n");
        assert_eq!(names[&0].raw(), "root");
        assert_eq!(names[&1000].raw(), "ann");
        assert_eq!(names.len(), 2);
    }
}
