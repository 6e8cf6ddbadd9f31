//! The library as it is installed, used by a project of somebody else's.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::compile::{Place, has, libraries, package, succeed};

/// Installs what cargo has built for this test, in a folder with a space in its name.
fn install(place: &Place) -> PathBuf {
    let prefix = place.folder.path().join("pre fix");
    let mut command = Command::new(package().join("install"));
    succeed(command.arg("--prefix").arg(&prefix).arg("--from").arg(libraries()));
    prefix
}

fn expect_version(command: &mut Command) {
    let output = succeed(command.env("TT_ALLOC_TRACKING_ENABLED", "1"));
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), env!("CARGO_PKG_VERSION"));
}

#[test]
fn the_cmake_package_is_used_by_another_project() {
    if !has("cmake", "the CMake package") {
        return;
    }
    let place = Place::new();
    let installed = install(&place);
    // Where it is by now, not where it was installed: the package can be moved.
    let moved = place.folder.path().join("moved");
    std::fs::rename(installed, &moved).unwrap();
    let build = place.folder.path().join("build");
    let mut configure = Command::new("cmake");
    configure.arg("-S").arg(package().join("tests/project")).arg("-B").arg(&build);
    succeed(configure.arg(format!("-DCMAKE_PREFIX_PATH={}", moved.display())));
    succeed(Command::new("cmake").arg("--build").arg(&build));
    for program in ["shared_c", "static_c", "shared_cpp", "static_cpp"] {
        expect_version(&mut place.command(build.join(program)));
    }
    expect_version(place.command(build.join("headers_c")).arg(moved.join("lib/libtt_shm.so.1")));
    assert!(place.files().is_empty());
}

/// Links a program by what pkg-config says.
fn by_pkg_config(place: &Place, prefix: &Path, options: &[&str]) -> PathBuf {
    let mut command = Command::new("pkg-config");
    command
        .env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig"))
        .args(options)
        .args(["--cflags", "--libs", "tt-shm"]);
    let flags = String::from_utf8(succeed(&mut command).stdout).unwrap();
    let program = place.folder.path().join("by-pkg-config");
    let link = format!(
        "gcc '{0}/host.c' -o '{1}' {flags}",
        package().join("tests/project").display(),
        program.display()
    );
    succeed(Command::new("sh").arg("-c").arg(link));
    program
}

#[test]
fn pkg_config_says_how_to_link_it() {
    if !has("pkg-config", "the pkg-config file") || !has("gcc", "the pkg-config file") {
        return;
    }
    let place = Place::new();
    let prefix = install(&place);
    let shared = by_pkg_config(&place, &prefix, &[]);
    expect_version(place.command(shared).env("LD_LIBRARY_PATH", prefix.join("lib")));
    // Only the static library is there now.
    for name in ["libtt_shm.so", "libtt_shm.so.1"] {
        std::fs::remove_file(prefix.join("lib").join(name)).unwrap();
    }
    let linked = by_pkg_config(&place, &prefix, &["--static"]);
    expect_version(&mut place.command(linked));
}

#[test]
fn the_installer_says_what_it_does_not_understand() {
    let output = Command::new(package().join("install")).args(["--prefx", "x"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("--prefx"));
}
