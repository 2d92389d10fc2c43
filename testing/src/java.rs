//! Finds Java and ZooKeeper's jars.
//!
//! A release tree named by `ZOOKEEPER_HOME` comes first, then what Debian's package `zookeeper`
//! puts under `/usr/share/java`. Java is taken from `JAVA_HOME`, else from `PATH`.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::{Error, ErrorKind};

const DEBIAN_JARS: &str = "/usr/share/java";
const MAIN_CLASS: &str = "org.apache.zookeeper.server.quorum.QuorumPeerMain";
const OLDEST: (u32, u32) = (3, 6);
const WHAT_TO_DO: &str = "install it (apt-get install --no-install-recommends zookeeper \
                          default-jre-headless) or set ZOOKEEPER_HOME to a release of ZooKeeper";

/// Flags for a start in a third of a second and a small footprint.
const FLAGS: [&str; 5] =
    ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:-UsePerfData", "-Xshare:auto", "-Xmx256m"];

/// A Java program and the jars of one ZooKeeper.
#[derive(Clone, Debug)]
pub(crate) struct Java {
    program: PathBuf,
    class_path: String,
}

impl Java {
    pub(crate) fn find() -> Result<Self, Error> {
        let jars = match env::var_os("ZOOKEEPER_HOME") {
            Some(home) => release_tree(Path::new(&home))?,
            None => debian_jars(Path::new(DEBIAN_JARS))?,
        };
        check_version(&jars)?;
        let class_path = jars.iter().map(|jar| jar.to_string_lossy()).collect::<Vec<_>>().join(":");
        Ok(Self { program: java_program()?, class_path })
    }

    /// What runs a server with the configuration file `config`.
    pub(crate) fn command(&self, properties: &[(String, String)], config: &Path) -> Command {
        let mut command = Command::new(&self.program);
        command.args(FLAGS);
        command.args(properties.iter().map(|(key, value)| format!("-D{key}={value}")));
        command.args(["-cp", &self.class_path, MAIN_CLASS]).arg(config);
        command
    }
}

/// All jars of a release: `lib/*.jar` since 3.5; before, ZooKeeper's own lay beside that folder.
fn release_tree(home: &Path) -> Result<Vec<PathBuf>, Error> {
    let mut jars = jars_in(&home.join("lib"));
    jars.extend(jars_in(home));
    if zookeeper_jar(&jars).is_none() {
        let home = home.display();
        return Err(not_found(&format!("no zookeeper-<version>.jar in ZOOKEEPER_HOME={home}")));
    }
    Ok(jars)
}

/// Debian's jar names what it needs in its manifest, except for a log writer.
fn debian_jars(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let all = jars_in(folder);
    let Some(zookeeper) = zookeeper_jar(&all) else {
        return Err(not_found(&format!("no zookeeper-<version>.jar in {}", folder.display())));
    };
    Ok(vec![zookeeper.clone(), folder.join("slf4j-simple.jar")])
}

fn jars_in(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    let mut jars: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "jar"))
        .collect();
    jars.sort();
    jars
}

fn zookeeper_jar(jars: &[PathBuf]) -> Option<&PathBuf> {
    jars.iter().find(|jar| version_of(jar).is_some())
}

fn check_version(jars: &[PathBuf]) -> Result<(), Error> {
    let Some((jar, version)) = jars.iter().find_map(|jar| Some((jar, version_of(jar)?))) else {
        return Err(not_found("no jar carries ZooKeeper's version in its name"));
    };
    if version < OLDEST {
        let text = format!("{} is older than ZooKeeper 3.6: use a newer release", jar.display());
        return Err(Error::new(ErrorKind::UnsupportedVersion, text));
    }
    Ok(())
}

/// Major and minor version of `zookeeper-3.8.0.jar`; none for the jars of other parts.
fn version_of(jar: &Path) -> Option<(u32, u32)> {
    let name = jar.file_name()?.to_str()?;
    let version = name.strip_prefix("zookeeper-")?.strip_suffix(".jar")?;
    let mut parts = version.split('.');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

fn java_program() -> Result<PathBuf, Error> {
    let home = env::var_os("JAVA_HOME").map(|home| PathBuf::from(home).join("bin"));
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = home.into_iter().chain(env::split_paths(&path));
    folders
        .map(|folder| folder.join("java"))
        .find(|program| program.is_file())
        .ok_or_else(|| not_found("no java in JAVA_HOME or PATH"))
}

fn not_found(what: &str) -> Error {
    Error::new(ErrorKind::NotInstalled, format!("ZooKeeper cannot run: {what}; {WHAT_TO_DO}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn jars(names: &[&str]) -> Vec<PathBuf> {
        names.iter().map(PathBuf::from).collect()
    }

    #[test]
    fn the_version_is_read_from_the_name_of_the_jar() {
        assert_eq!(version_of(Path::new("/lib/zookeeper-3.8.0.jar")), Some((3, 8)));
        assert_eq!(version_of(Path::new("/lib/zookeeper-3.10.1-SNAPSHOT.jar")), Some((3, 10)));
        assert_eq!(version_of(Path::new("/lib/zookeeper-jute-3.8.0.jar")), None);
        assert_eq!(version_of(Path::new("/lib/zookeeper.jar")), None);
    }

    #[test]
    fn a_server_below_3_6_is_refused_by_name() {
        assert!(check_version(&jars(&["jline.jar", "zookeeper-3.6.0.jar"])).is_ok());
        let error = check_version(&jars(&["zookeeper-3.4.14.jar"])).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::UnsupportedVersion);
        assert!(error.to_string().contains("zookeeper-3.4.14.jar"));
    }

    #[test]
    fn a_missing_server_says_what_to_install() {
        let error = release_tree(Path::new("/nowhere")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotInstalled);
        let text = error.to_string();
        assert!(text.contains("/nowhere") && text.contains("apt-get install"), "{text}");
        assert!(!text.contains('\n'));
        assert!(debian_jars(Path::new("/nowhere")).is_err());
    }
}
