//! The rules of ZooKeeper's paths, and the prefix under which a client lives.
//!
//! A path that passes [`validate`] is one that every server takes: the rules are those of
//! ZooKeeper's own clients and servers, checked here so that a bad path is refused before anything
//! is sent, with an error that names the path, the place and the reason. All other functions take
//! paths that have passed.
//!
//! ```text
//!   ""          must begin with '/'          "/"        the root
//!   "/a/"       ends with '/'                "/a b"     fine
//!   "/a//b"     empty segment                "/...a"    fine
//!   "/a/../b"   relative segment             "/ä"       fine
//!   "/a\n"      control character            "/😀"      not a character of ZooKeeper's
//! ```

use crate::error::{Error, Result};
use crate::node::CreateMode;

/// Checks that `path` is absolute and well formed, by ZooKeeper's rules.
///
/// # Errors
/// `InvalidArgument`, which names the path, the byte and the reason.
pub fn validate(path: &str) -> Result<()> {
    check(path).map_err(Error::invalid)
}

/// Checks `path` for a node that is to be created with `mode`.
///
/// To the path of a sequential node the server adds ten digits, and what counts is the result: it
/// may end with '/', unlike other paths, and the name then consists of the digits alone.
pub(crate) fn validate_new(path: &str, mode: CreateMode) -> Result<()> {
    if mode.is_sequential() { validate(&format!("{path}0000000000")) } else { validate(path) }
}

/// Does the work of [`validate`]; the text of a refusal is for an error that says more.
pub(crate) fn check(path: &str) -> Result<(), String> {
    if path == "/" {
        return Ok(());
    }
    let Some(segments) = path.strip_prefix('/') else {
        return Err(format!("path {path:?} must begin with '/'"));
    };
    if segments.ends_with('/') {
        return Err(format!("path {path:?} must not end with '/'"));
    }
    let mut start = 1;
    for segment in segments.split('/') {
        if let Some(Flaw { offset, reason }) = flaw(segment) {
            return Err(format!("path {path:?} at byte {}: {reason}", start + offset));
        }
        start += segment.len() + 1;
    }
    Ok(())
}

/// What is wrong with a segment, and at which of its bytes.
struct Flaw {
    offset: usize,
    reason: String,
}

fn flaw(segment: &str) -> Option<Flaw> {
    if segment.is_empty() {
        return Some(Flaw { offset: 0, reason: "empty segment".to_owned() });
    }
    if segment == "." || segment == ".." {
        return Some(Flaw { offset: 0, reason: format!("relative segment {segment:?}") });
    }
    let (offset, character) = segment.char_indices().find(|&(_, c)| !is_allowed(c))?;
    Some(Flaw { offset, reason: format!("character {character:?} is not allowed") })
}

/// Servers look at UTF-16 units and refuse all surrogates: nothing beyond U+FFFF can pass.
fn is_allowed(c: char) -> bool {
    !matches!(
        c,
        '\0'..='\u{1f}'
            | '\u{7f}'..='\u{9f}'
            | '\u{e000}'..='\u{f8ff}'
            | '\u{fff0}'..='\u{ffff}'
            | '\u{10000}'..
    )
}

/// The path of the node `child` below `parent`.
pub(crate) fn join(parent: &str, child: &str) -> String {
    let separator = if parent == "/" { "" } else { "/" };
    format!("{parent}{separator}{child}")
}

/// The path of the node above, which the root alone does not have.
pub(crate) fn parent(path: &str) -> Option<&str> {
    match path.rsplit_once('/')? {
        ("", "") => None,
        ("", _) => Some("/"),
        (parent, _) => Some(parent),
    }
}

/// The last segment, which is empty for the root alone.
pub(crate) fn name(path: &str) -> &str {
    path.rsplit_once('/').map_or(path, |(_, name)| name)
}

/// The nodes above `path` from the top down, without the root and without `path` itself.
pub(crate) fn ancestors(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').skip(1).map(|(end, _)| &path[..end])
}

/// A node below which all paths of a client lie, such as the chroot of its connect string.
///
/// A *logical* path is what the caller says, a *full* path what the server sees. With the root
/// `/app` the logical `/` is the full `/app`, and the logical `/a` is `/app/a`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Root {
    /// Empty where the root is the server's own, so that prefix and logical path just join.
    prefix: String,
}

impl Root {
    /// The root at the node `path`; "/" is the server's own root.
    pub(crate) fn new(path: &str) -> Self {
        let prefix = if path == "/" { "" } else { path };
        Self { prefix: prefix.to_owned() }
    }

    /// The root of the server.
    pub(crate) fn server() -> Self {
        Self::new("/")
    }

    /// The full path of the root itself.
    pub(crate) fn path(&self) -> &str {
        if self.prefix.is_empty() { "/" } else { &self.prefix }
    }

    /// What the server calls the node that the caller calls `logical`.
    pub(crate) fn full(&self, logical: &str) -> String {
        match logical {
            "/" => self.path().to_owned(),
            _ => format!("{}{logical}", self.prefix),
        }
    }

    /// What the caller calls the node that the server calls `full`; none if it lies elsewhere.
    pub(crate) fn logical<'a>(&self, full: &'a str) -> Option<&'a str> {
        match full.strip_prefix(&self.prefix)? {
            "" => Some("/"),
            logical => logical.starts_with('/').then_some(logical),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(path: &str) -> String {
        validate(path).expect_err(path).to_string()
    }

    #[test]
    fn every_path_a_server_takes_passes() {
        for path in ["/", "/a", "/a/b c", "/...", "/a..b/.c", "/ä/日本", "/\u{20}", "/\u{ffef}"]
        {
            validate(path).unwrap_or_else(|error| panic!("{error}"));
        }
    }

    #[test]
    fn a_refusal_names_path_place_and_reason() {
        let cases = [
            ("", "path \"\" must begin with '/'"),
            ("a/b", "path \"a/b\" must begin with '/'"),
            ("/a/", "path \"/a/\" must not end with '/'"),
            ("//", "path \"//\" must not end with '/'"),
            ("/a//b", "path \"/a//b\" at byte 3: empty segment"),
            ("//a", "path \"//a\" at byte 1: empty segment"),
            ("/a/./b", "path \"/a/./b\" at byte 3: relative segment \".\""),
            ("/ä/..", "path \"/ä/..\" at byte 4: relative segment \"..\""),
            ("/a\0b", "path \"/a\\0b\" at byte 2: character '\\0' is not allowed"),
        ];
        for (path, text) in cases {
            assert_eq!(refusal(path), format!("invalid argument: {text}"));
        }
    }

    #[test]
    fn the_edges_of_the_forbidden_ranges_are_exact() {
        let edges = [
            (0x00, 0x1f),
            (0x7f, 0x9f),
            (0xe000, 0xf8ff),
            (0xfff0, 0xffff),
            (0x10000, 0x0010_ffff),
        ];
        let path = |code: u32| char::from_u32(code).map(|c| format!("/x{c}"));
        for (first, last) in edges {
            for code in [first, last] {
                assert!(validate(&path(code).unwrap()).is_err(), "U+{code:04X}");
            }
        }
        for code in [0x20, 0x7e, 0xa0, 0xd7ff, 0xf900, 0xffef] {
            assert!(validate(&path(code).unwrap()).is_ok(), "U+{code:04X}");
        }
    }

    #[test]
    fn the_path_of_a_sequential_node_is_judged_with_its_digits() {
        let sequential = CreateMode::PersistentSequential;
        for path in ["/", "/a", "/a/", "/a/lock-", "/a/.."] {
            validate_new(path, sequential).unwrap_or_else(|error| panic!("{error}"));
        }
        for path in ["", "//", "/a//", "a/", "/../", "/a\n"] {
            assert!(validate_new(path, sequential).is_err(), "{path}");
        }
        assert!(validate_new("/a/", CreateMode::Ephemeral).is_err());
    }

    #[test]
    fn a_path_is_its_parent_and_its_name() {
        for (path, above, last) in [("/a", "/", "a"), ("/a/b", "/a", "b"), ("/a/b/c", "/a/b", "c")]
        {
            assert_eq!(parent(path), Some(above));
            assert_eq!(name(path), last);
            assert_eq!(join(above, last), path);
        }
        assert_eq!(parent("/"), None);
        assert_eq!(name("/"), "");
    }

    #[test]
    fn ancestors_come_from_the_top_down() {
        assert_eq!(ancestors("/a/b/c").collect::<Vec<_>>(), ["/a", "/a/b"]);
        assert_eq!(ancestors("/a").next(), None);
        assert_eq!(ancestors("/").next(), None);
    }

    #[test]
    fn a_root_translates_both_ways() {
        let app = Root::new("/app");
        let server = Root::new("/");
        let cases = [
            (&app, "/", "/app"),
            (&app, "/a/b", "/app/a/b"),
            (&server, "/", "/"),
            (&server, "/a/b", "/a/b"),
        ];
        for (root, logical, full) in cases {
            assert_eq!(root.full(logical), full);
            assert_eq!(root.logical(full), Some(logical));
        }
        assert_eq!((app.path(), server.path()), ("/app", "/"));
    }

    #[test]
    fn a_node_elsewhere_has_no_logical_path() {
        let root = Root::new("/app");
        for full in ["/", "/other", "/application", "/ap"] {
            assert_eq!(root.logical(full), None, "{full}");
        }
    }
}
