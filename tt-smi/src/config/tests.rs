use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

use super::*;

/// A home for settings, removed at the end.
struct Home(TempDir);

impl Home {
    fn new(text: &str) -> Home {
        let home = Home(TempDir::new().unwrap());
        std::fs::create_dir(home.0.path().join("tt-smi")).unwrap();
        std::fs::write(home.file(), text).unwrap();
        home
    }

    fn file(&self) -> PathBuf {
        self.0.path().join("tt-smi/config.toml")
    }

    fn load(&self, variables: &[(&str, &str)]) -> Result<Resolved, ConfigError> {
        let mut all: HashMap<&str, OsString> =
            variables.iter().map(|(k, v)| (*k, OsString::from(v))).collect();
        all.insert("XDG_CONFIG_HOME", self.0.path().into());
        Resolved::load(|name| all.get(name).cloned())
    }

    #[track_caller]
    fn error(&self, variables: &[(&str, &str)]) -> String {
        self.load(variables).unwrap_err().to_string().replace(&*self.file().to_string_lossy(), "FILE")
    }
}

#[test]
fn a_flag_wins_over_the_environment_over_the_file_over_the_default() {
    let home = Home::new("# mine\ncolor = \"always\"\ntheme = \"Light\"\n\nascii = true\n");
    let variables = [("TT_SMI_THEME", "safe"), ("TT_SMI_COLOR", "never"), ("TT_SMI_VIEW", "")];
    let resolved = home.load(&variables).unwrap().with_color(Some(ColorChoice::Auto));
    let expected =
        Config { theme: Palette::Safe, ascii: true, color: ColorChoice::Auto, ..Config::default() };
    assert_eq!(resolved.config, expected);
    let origin = |key| resolved.origin(key).clone();
    assert_eq!(origin(Key::Color), SettingOrigin::Flag("--color"));
    assert_eq!(origin(Key::Theme), SettingOrigin::Environment("TT_SMI_THEME".to_owned()));
    assert_eq!(origin(Key::Ascii), SettingOrigin::File { path: home.file(), line: 5 });
    assert_eq!(origin(Key::View), SettingOrigin::Default);
    assert_eq!(home.load(&[]).unwrap().config.color, ColorChoice::Always);
}

#[test]
fn errors_name_the_file_the_line_and_what_is_allowed() {
    for (text, message) in [
        ("\ntheem = \"light\"\n", "FILE:2:1: no key \"theem\"; there are theme, color"),
        ("theme = \"dark\"\n", "FILE:1:9: theme cannot be \"dark\"; it may be default, safe, light or mono"),
        ("\n\ninterval = \"1ms\"", "FILE:3:12: interval cannot be \"1ms\"; it may be a time from 20ms to 1h"),
        ("ascii = 1", "FILE:1:9: ascii cannot be \"1\"; it may be true or false"),
        ("view = [1]", "FILE:1:8: view cannot be \"<array>\"; it may be overview, detail"),
        ("ascii = true\nascii = false", "FILE:2:1: "),
        ("ascii = true\n= 3", "FILE:2:1: "),
        ("ascii = true # größe\ntheme = größe", "FILE:2:9: "),
        ("[screen]\ntheme = \"light\"", "FILE:1:2: no key \"screen\""),
        ("\"a\\u001b[2J\" = 1", "FILE:1:1: no key \"a\\\\u{1b}[2J\""),
    ] {
        let error = Home::new(text).error(&[]);
        assert!(error.starts_with(message), "{text:?}: {error}");
    }
    let error = Home::new("").error(&[("TT_SMI_READONLY", "yes")]);
    assert_eq!(error, "TT_SMI_READONLY: readonly cannot be \"yes\"; it may be true or false");
}

#[test]
fn what_is_no_readable_file_is_said_and_no_file_is_fine() {
    let home = Home::new("");
    std::fs::remove_file(home.file()).unwrap();
    assert_eq!(home.load(&[]).unwrap().config, Config::default());
    std::fs::create_dir(home.file()).unwrap();
    assert_eq!(home.error(&[]), "cannot read FILE: not a regular file");
}

#[test]
fn the_file_is_where_the_specification_says() {
    let of = |variables: &[(&str, &str)]| {
        path(|name| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).into()))
    };
    let file = |folder: &str| Some(Path::new(folder).join("tt-smi/config.toml"));
    assert_eq!(of(&[("XDG_CONFIG_HOME", "/x"), ("HOME", "/h")]), file("/x"));
    assert_eq!(of(&[("XDG_CONFIG_HOME", "relative"), ("HOME", "/h")]), file("/h/.config"));
    assert_eq!(of(&[("XDG_CONFIG_HOME", "")]), None);
}

#[test]
fn the_template_sets_nothing_and_its_lines_are_the_defaults() {
    let untouched = Home::new(&template()).load(&[]).unwrap();
    assert_eq!(untouched.config, Config::default());
    assert_eq!(untouched.origin(Key::Theme), &SettingOrigin::Default);
    let lines: Vec<String> = template()
        .lines()
        .map(|line| line.strip_prefix('#').filter(|line| !line.starts_with(' ')).unwrap_or("").to_owned())
        .collect();
    let all = Home::new(&lines.join("\n")).load(&[]).unwrap();
    assert_eq!(all.config, Config::default());
    assert!(Key::ALL.into_iter().all(|key| matches!(all.origin(key), SettingOrigin::File { .. })));
}
