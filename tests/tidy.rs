//! The rules of this repository that no compiler knows, read off the tree itself.
//!
//! A rule collects what breaks it as `file:line: what is wrong` and fails with the whole list.
//! Rust is read line by line, which is enough for code that rustfmt has laid out: an item ends at
//! the first line of its own indentation that ends in `}` or `;`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// Which module of a package may import which.
struct Order {
    root: &'static str,
    /// From the public face to the ground: a file may import what stands in a later row, and its
    /// own module. A module that no row names stands before the first.
    rows: &'static [&'static [&'static str]],
    /// Names that everybody may import.
    shared: &'static [&'static str],
}

const FRAMEWORK: Order = Order {
    root: "src/",
    rows: &[
        &["builder"],
        &["client"],
        &["create", "transaction"],
        &["protection"],
        &["delete"],
        &["retry::run"],
        &["connection"],
        &["connect_string", "operation", "retry"],
        &["path"],
        &["node"],
        &["error"],
    ],
    // The number of a session is a word of every layer's errors and states.
    shared: &["connection::SessionEpoch"],
};

/// Every module that is not named here is a recipe.
const RECIPES: Order = Order {
    root: "recipes/src/",
    rows: &[&["contender", "transaction"], &["queue"], &["owner"], &["error"]],
    shared: &[],
};

const PRODUCT: &[&str] = &["src/", "recipes/src/", "testing/src/"];
const CODE_LINES_MAX: usize = 400;
const FUNCTION_LINES_MAX: usize = 70;
const LINE_CHARS_MAX: usize = 100;

/// This file: it has to spell out what it forbids.
const SELF: &str = "tests/tidy.rs";

#[test]
fn the_framework_imports_from_the_public_face_to_the_ground() {
    report(broken_imports(&FRAMEWORK));
}

#[test]
fn recipes_import_the_queue_and_never_one_another() {
    report(broken_imports(&RECIPES));
}

#[test]
fn only_link_names_the_wire_crate() {
    report(named_outside("src/connection/link.rs", "zookeeper_client"));
}

#[test]
fn only_the_exponential_policy_names_backoff() {
    report(named_outside("src/retry/exponential.rs", "backoff::"));
}

#[test]
fn only_clock_reads_the_clock() {
    report(named_outside("src/connection/clock.rs", "clock_gettime"));
}

#[test]
fn nothing_is_decided_by_the_wall_clock() {
    report(lines_with(&["src/", "recipes/src/"], File::code, &["SystemTime"]));
}

#[test]
fn product_code_never_unwraps() {
    report(lines_with(PRODUCT, File::product, &[".unwrap()"]));
}

#[test]
fn nothing_is_left_undone_or_ignored() {
    let marks = ["todo!(", "unimplemented!(", "dbg!(", "#[ignore"];
    report(lines_with(&[""], File::code, &marks));
}

#[test]
fn no_file_carries_a_note_to_its_author() {
    report(lines_with(&[""], File::all, &["TODO", "FIXME", "XXX", "HACK", "WIP"]));
}

#[test]
fn no_file_names_a_place_on_one_machine() {
    report(lines_with(&[""], File::all, &["/work/", "/root/", "/home/", "/tmp/", "/Users/"]));
}

#[test]
fn files_have_at_most_400_code_lines() {
    let too_long = |file: &File| {
        let lines = code_lines(&file.without_test_items());
        (lines > CODE_LINES_MAX).then(|| format!("{}:1: {lines} code lines", file.path))
    };
    report(rust_files(&[""]).iter().filter_map(too_long).collect());
}

#[test]
fn functions_have_at_most_70_lines() {
    report(rust_files(&[""]).iter().flat_map(long_functions).collect());
}

#[test]
fn lines_have_at_most_100_characters() {
    let is_long = |line: &str| line.chars().count() > LINE_CHARS_MAX && !line.contains("https://");
    let long = |file: &File| {
        let lines = file.text.lines().enumerate().filter(|(_, line)| is_long(line));
        lines.map(|(at, _)| format!("{}:{}: a long line", file.path, at + 1)).collect::<Vec<_>>()
    };
    report(rust_files(&[""]).iter().flat_map(long).collect());
}

#[test]
fn public_signatures_name_no_type_of_a_dependency() {
    let foreign = ["tokio::", "backoff::", "zookeeper_client::", "futures::"];
    let mut broken = Vec::new();
    for file in rust_files(&["src/", "recipes/src/"]) {
        for (number, signature) in public_signatures(&file.product()) {
            for name in foreign.iter().filter(|name| has_word(&signature, name)) {
                broken.push(format!("{}:{number}: `{name}` in a public item", file.path));
            }
        }
    }
    report(broken);
}

#[test]
fn dependencies_come_from_crates_io_under_an_allowed_licence() {
    let allowed = allowed_licences();
    let root = root();
    let mut broken = Vec::new();
    for package in packages() {
        let text = |key: &str| package[key].as_str().unwrap_or_default();
        let id = text("id");
        if !licence_is_allowed(text("license"), &allowed) {
            broken.push(format!("{id}: licence `{}` is not in deny.toml", text("license")));
        }
        let is_ours =
            package["source"].is_null() && Path::new(text("manifest_path")).starts_with(&root);
        if !(is_ours || text("source").ends_with("/crates.io-index")) {
            broken.push(format!("{id}: is not from crates.io"));
        }
    }
    report(broken);
}

#[test]
fn every_package_has_lints() {
    let has_lints = |file: &File| file.text.lines().any(|line| line.starts_with("[lints"));
    let manifests = files(&[""]).into_iter().filter(|file| file.path.ends_with("Cargo.toml"));
    let broken = manifests.filter(|file| !has_lints(file));
    report(broken.map(|file| format!("{}:1: no [lints]", file.path)).collect());
}

#[test]
fn every_document_has_a_title() {
    let documents = files(&["docs/"]).into_iter().filter(|file| file.path.ends_with(".md"));
    let broken = documents.filter(|file| !file.text.starts_with("# "));
    report(broken.map(|file| format!("{}:1: no `# Title`", file.path)).collect());
}

#[test]
fn every_direct_dependency_has_its_reason() {
    let home = "docs/decisions/dependencies.md";
    let reasons = fs::read_to_string(root().join(home)).expect("the page can be read");
    let members = packages().into_iter().filter(|package| package["source"].is_null());
    let named = members.flat_map(|package| package["dependencies"].as_array().cloned());
    let names = named.flatten().filter_map(|found| found["name"].as_str().map(str::to_owned));
    let without = names.filter(|name| !reasons.contains(&format!("`{name}`")));
    report(without.map(|name| format!("{home}:1: no reason for `{name}`")).collect());
}

#[test]
fn documents_name_only_files_that_exist() {
    let mut broken = Vec::new();
    for file in files(&[""]).iter().filter(|file| file.path.ends_with(".md")) {
        for (at, line) in file.text.lines().enumerate() {
            let quoted = line.split('`').skip(1).step_by(2);
            let sources = quoted.filter(|name| name.contains('/') && name.ends_with(".rs"));
            let missing = sources.filter(|name| !name.contains('<') && !root().join(name).exists());
            broken.extend(missing.map(|name| format!("{}:{}: no `{name}`", file.path, at + 1)));
        }
    }
    report(broken);
}

fn report(broken: Vec<String>) {
    assert!(broken.is_empty(), "\n{}\n", broken.join("\n"));
}

// ---- The tree ----

struct File {
    /// From the root of the repository, with `/` between the names.
    path: String,
    text: String,
}

impl File {
    fn all(&self) -> String {
        self.text.clone()
    }

    /// The text with its comments emptied; every line keeps its number.
    fn code(&self) -> String {
        let comment = |line: &str| line.trim_start().starts_with("//");
        let code = |line| if comment(line) { "" } else { line.split(" // ").next().unwrap_or("") };
        self.text.lines().map(code).collect::<Vec<_>>().join("\n")
    }

    /// The code that users get, in the same way: without what only tests compile.
    fn product(&self) -> String {
        let is_test = self.path.ends_with("tests.rs") || self.path.contains("/tests/");
        if is_test { String::new() } else { self.without_test_items() }
    }

    fn without_test_items(&self) -> String {
        let mut kept = Vec::new();
        let mut skipped = None;
        for line in self.code().lines() {
            if line.trim() == "#[cfg(test)]" {
                skipped = Some(indent(line));
            }
            kept.push(if skipped.is_some() { "".into() } else { line.to_owned() });
            if skipped.is_some_and(|indent| ends_item(line, indent)) {
                skipped = None;
            }
        }
        kept.join("\n")
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests/ has a parent").to_owned()
}

/// The text files under these folders, each of which must have some.
fn files(folders: &[&str]) -> Vec<File> {
    let mut files = Vec::new();
    for folder in folders {
        let known = files.len();
        collect(&root(), &root().join(folder), &mut files);
        assert!(files.len() > known, "no file under `{folder}`");
    }
    files
}

fn rust_files(folders: &[&str]) -> Vec<File> {
    files(folders).into_iter().filter(|file| file.path.ends_with(".rs")).collect()
}

fn collect(root: &Path, folder: &Path, files: &mut Vec<File>) {
    for entry in fs::read_dir(folder).expect("the folder can be read") {
        let path = entry.expect("the entry can be read").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name == "target" || (name.starts_with('.') && name != ".ci") {
            continue;
        }
        if path.is_dir() {
            collect(root, &path, files);
        } else if let Ok(text) = fs::read_to_string(&path) {
            let path = path.strip_prefix(root).expect("it is under the root");
            files.push(File { path: path.to_string_lossy().into_owned(), text });
        }
    }
}

// ---- Lines and words ----

/// The lines of the files under these folders that have one of the words.
fn lines_with(folders: &[&str], part: fn(&File) -> String, words: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    for file in files(folders).iter().filter(|file| file.path != SELF) {
        for (at, line) in part(file).lines().enumerate() {
            for word in words.iter().filter(|word| has_word(line, word)) {
                found.push(format!("{}:{}: `{word}`", file.path, at + 1));
            }
        }
    }
    found
}

fn named_outside(home: &str, word: &str) -> Vec<String> {
    let mut found = lines_with(PRODUCT, File::code, &[word]);
    found.retain(|place| !place.starts_with(&format!("{home}:")));
    found
}

/// Whether the word stands there by itself and not as a part of a longer name or path. A word that
/// begins or ends with a sign needs no boundary on that side, a path needs one in front.
fn has_word(line: &str, word: &str) -> bool {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let starts_open = |before: &str| match word.chars().next() {
        Some('/') => !before.ends_with(|c| is_name(c) || "./-~$}".contains(c)),
        first => !(first.is_some_and(is_name) && before.ends_with(is_name)),
    };
    let ends_open = |after: &str| !(word.ends_with(is_name) && after.starts_with(is_name));
    line.match_indices(word)
        .any(|(at, _)| starts_open(&line[..at]) && ends_open(&line[at + word.len()..]))
}

fn code_lines(text: &str) -> usize {
    text.lines().filter(|line| !line.trim().is_empty()).count()
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

fn ends_item(line: &str, item_indent: usize) -> bool {
    indent(line) == item_indent && line.ends_with(['}', ';'])
}

fn long_functions(file: &File) -> Vec<String> {
    let code = file.code();
    let lines: Vec<&str> = code.lines().collect();
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate().filter(|(_, line)| starts_function(line)) {
        let rest = &lines[at..];
        let end = rest.iter().position(|other| ends_item(other, indent(line)));
        let body = &rest[..end.map_or(rest.len(), |end| end + 1)];
        let length = body.iter().filter(|line| !line.trim().is_empty()).count();
        if length > FUNCTION_LINES_MAX {
            found.push(format!("{}:{}: a function of {length} lines", file.path, at + 1));
        }
    }
    found
}

fn starts_function(line: &str) -> bool {
    let mut words = line.split_whitespace();
    let is_qualifier = |word: &&str| word.starts_with("pub") || ["const", "async"].contains(word);
    words.by_ref().find(|word| !is_qualifier(word)) == Some("fn")
}

/// The public items and fields, each from its line to its brace, semicolon or comma.
fn public_signatures(text: &str) -> Vec<(usize, String)> {
    let lines: Vec<&str> = text.lines().collect();
    let mut signatures = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        if line.trim_start().starts_with("pub ") {
            let ends: &[char] =
                if starts_function(line) { &['{', ';', '}'] } else { &['{', ';', ','] };
            let length = lines[at..].iter().position(|line| line.ends_with(ends)).unwrap_or(0);
            signatures.push((at + 1, lines[at..=at + length].join(" ")));
        }
    }
    signatures
}

// ---- Imports ----

fn broken_imports(order: &Order) -> Vec<String> {
    let mut broken = Vec::new();
    for file in rust_files(&[order.root]) {
        let from = module_of(&file.path[order.root.len()..]);
        for (number, path) in crate_paths(&file.product(), &from) {
            let (from_row, from_name) = place(order, &from);
            let (to_row, to_name) = place(order, &path);
            let is_allowed = to_row > from_row || to_name == from_name;
            if from != "lib" && !is_allowed && !order.shared.contains(&path.as_str()) {
                let text = format!("`{from_name}` may not import `crate::{path}`");
                broken.push(format!("{}:{number}: {text} (see `Order` in {SELF})", file.path));
            }
        }
    }
    broken
}

/// `connection/mod.rs` is `connection`, `retry/run.rs` is `retry::run`.
fn module_of(path: &str) -> String {
    path.trim_end_matches(".rs").trim_end_matches("/mod").replace('/', "::")
}

/// The row of a path and the module that stands there for it.
fn place<'a>(order: &Order, path: &'a str) -> (usize, &'a str) {
    let is_within = |module: &str| {
        path.strip_prefix(module).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
    };
    let rows = order.rows.iter().enumerate();
    let modules =
        rows.flat_map(|(at, row)| row.iter().map(move |module| (at + 1, module.len(), module)));
    let nearest = modules.filter(|(_, _, module)| is_within(module)).max_by_key(|found| found.1);
    match nearest {
        Some((row, length, _)) => (row, &path[..length]),
        None => (0, path.split("::").next().unwrap_or(path)),
    }
}

/// Every path from the root of the crate, by `crate::` or enough `super::`, with groups spelled
/// out, and the line where it begins.
fn crate_paths(text: &str, module: &str) -> Vec<(usize, String)> {
    let text = text.replace(&"super::".repeat(module.split("::").count()), "crate::");
    let mut paths = Vec::new();
    for (at, start) in text.match_indices("crate::") {
        let number = text[..at].matches('\n').count() + 1;
        let spelled_out = spell_out(&text[at + start.len()..]);
        paths.extend(spelled_out.into_iter().map(|path| (number, path)));
    }
    paths
}

/// `a::{b, c::d}` is `a::b` and `a::c::d`.
fn spell_out(text: &str) -> Vec<String> {
    let is_path = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    let (head, rest) = text.split_at(text.find(|c| !is_path(c)).unwrap_or(text.len()));
    match rest.strip_prefix('{').filter(|_| head.is_empty() || head.ends_with("::")) {
        None => vec![head.to_owned()],
        Some(group) => {
            let items = group_items(group).into_iter().map(str::trim);
            let tails = items.filter(|item| !item.is_empty()).flat_map(spell_out);
            tails.map(|tail| format!("{head}{tail}")).collect()
        }
    }
}

/// What stands between the outer commas, up to the brace that closes the group.
fn group_items(group: &str) -> Vec<&str> {
    let (mut items, mut depth, mut start) = (Vec::new(), 0, 0);
    for (at, sign) in group.char_indices() {
        if depth == 0 && (sign == ',' || sign == '}') {
            items.push(&group[start..at]);
            start = at + 1;
        }
        match sign {
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            '{' => depth += 1,
            _ => {}
        }
    }
    items
}

// ---- Dependencies ----

/// What cargo knows of every package in Cargo.lock; asked without the network first.
fn packages() -> Vec<Value> {
    let ask = |more: &[&str]| {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["metadata", "--format-version", "1", "--locked"]).args(more);
        cargo.current_dir(root()).output().expect("cargo runs")
    };
    let mut answer = ask(&["--offline"]);
    if !answer.status.success() {
        answer = ask(&[]);
    }
    assert!(answer.status.success(), "{}", String::from_utf8_lossy(&answer.stderr));
    let answer: Value = serde_json::from_slice(&answer.stdout).expect("cargo answers in JSON");
    answer["packages"].as_array().expect("cargo lists packages").clone()
}

/// The list `allow` of deny.toml, so that both tools hold the same.
fn allowed_licences() -> Vec<String> {
    let text = fs::read_to_string(root().join("deny.toml")).expect("deny.toml can be read");
    let lines = text.lines().skip_while(|line| *line != "allow = [").skip(1);
    let names =
        lines.take_while(|line| *line != "]").map(|line| line.trim_matches([' ', '"', ',']));
    names.map(str::to_owned).collect()
}

/// Every `AND` needs an allowed side of its `OR`. An `OR` around an `AND` is read too strictly.
fn licence_is_allowed(expression: &str, allowed: &[String]) -> bool {
    let plain = expression.replace(['(', ')'], "").replace('/', " OR ");
    let is_allowed = |name: &str| allowed.iter().any(|allowed| allowed == name.trim());
    plain.split(" AND ").all(|either| either.split(" OR ").any(is_allowed))
}
