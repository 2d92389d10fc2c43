//! What a server is told at its start: the pure part of starting one.

use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

use crate::error::{Error, ErrorKind};

/// Settings that belong to this crate: another value would hide the server from it.
const RESERVED: [&str; 4] = ["clientPort", "clientPortAddress", "dataDir", "dataLogDir"];
const MAX_SESSION_TIMEOUT: Duration = Duration::from_secs(60);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// What a test may choose.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    pub(crate) tick_time: Duration,
    pub(crate) container_check_interval: Duration,
    pub(crate) lines: Vec<(String, String)>,
    pub(crate) properties: Vec<(String, String)>,
}

/// A member of an ensemble as one of its servers sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Member {
    pub(crate) quorum_port: u16,
    pub(crate) election_port: u16,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            tick_time: Duration::from_millis(200),
            container_check_interval: Duration::from_secs(1),
            lines: Vec::new(),
            properties: Vec::new(),
        }
    }
}

impl Config {
    pub(crate) fn check(&self) -> Result<(), Error> {
        check_period("tick_time", self.tick_time, MAX_SESSION_TIMEOUT / 2)?;
        check_period("container_check_interval", self.container_check_interval, DAY)?;
        for (key, value) in self.lines.iter().chain(&self.properties) {
            if key.is_empty() || key.contains(['\n', '=']) || value.contains('\n') {
                return Err(invalid(format!("the setting {key:?}={value:?} is not one line")));
            }
        }
        match self.lines.iter().find(|(key, _)| is_reserved(key)) {
            Some((key, value)) => Err(invalid(format!("{key}={value} is set by this crate alone"))),
            None => Ok(()),
        }
    }

    /// The text of `zoo.cfg`. The test's own lines come last: of two, ZooKeeper takes the later.
    pub(crate) fn zoo_cfg(&self, port: u16, data: &Path, members: &[Member]) -> String {
        let tick = self.tick_time.as_millis();
        let max_session = MAX_SESSION_TIMEOUT.as_millis();
        let data = data.display();
        let mut text = format!(
            "tickTime={tick}\nminSessionTimeout={}\nmaxSessionTimeout={max_session}\n\
             initLimit=20\nsyncLimit=10\n\
             dataDir={data}\nclientPort={port}\nclientPortAddress=127.0.0.1\n\
             maxClientCnxns=0\nadmin.enableServer=false\n4lw.commands.whitelist=*\n",
            2 * tick
        );
        for (id, member) in (1..).zip(members) {
            let Member { quorum_port, election_port } = member;
            line(&mut text, &format!("server.{id}"), &server(*quorum_port, *election_port));
        }
        for (key, value) in &self.lines {
            line(&mut text, key, value);
        }
        text
    }

    /// The system properties of the Java process; here too the later of two counts.
    pub(crate) fn system_properties(&self, directory: &Path) -> Vec<(String, String)> {
        let containers = self.container_check_interval.as_millis().to_string();
        let log4j = format!("file:{}", directory.join("log4j.properties").display());
        let logback = directory.join("logback.xml").display().to_string();
        let ours = [
            ("zookeeper.forceSync", "no".to_owned()),
            ("zookeeper.extendedTypesEnabled", "true".to_owned()),
            ("zookeeper.jmx.log4j.disable", "true".to_owned()),
            ("zookeeper.fastleader.maxNotificationInterval", "1000".to_owned()),
            ("znode.container.checkIntervalMs", containers),
            ("org.slf4j.simpleLogger.defaultLogLevel", "warn".to_owned()),
            ("log4j.configuration", log4j),
            ("logback.configurationFile", logback),
        ];
        let ours = ours.into_iter().map(|(key, value)| (key.to_owned(), value));
        ours.chain(self.properties.iter().cloned()).collect()
    }
}

/// Quiet log writers for a release of ZooKeeper, by file name. Debian's needs a property alone.
pub(crate) const LOG_CONFIGS: [(&str, &str); 2] = [
    (
        "log4j.properties",
        "log4j.rootLogger=WARN, out\n\
         log4j.appender.out=org.apache.log4j.ConsoleAppender\n\
         log4j.appender.out.layout=org.apache.log4j.SimpleLayout\n",
    ),
    (
        "logback.xml",
        "<configuration>\n\
         <appender name=\"out\" class=\"ch.qos.logback.core.ConsoleAppender\">\n\
         <encoder><pattern>%d %-5level %logger %msg%n</pattern></encoder>\n\
         </appender>\n\
         <root level=\"WARN\"><appender-ref ref=\"out\"/></root>\n\
         </configuration>\n",
    ),
];

fn line(text: &mut String, key: &str, value: &str) {
    writeln!(text, "{key}={value}").expect("writing to a string cannot fail");
}

fn server(quorum: u16, election: u16) -> String {
    format!("127.0.0.1:{quorum}:{election}")
}

fn is_reserved(key: &str) -> bool {
    RESERVED.contains(&key) || key.starts_with("server.")
}

fn check_period(name: &str, period: Duration, max: Duration) -> Result<(), Error> {
    if period < Duration::from_millis(1) || period > max {
        let text = format!("{name} must be from 1 ms to {max:?} and is {period:?}");
        return Err(invalid(text));
    }
    Ok(())
}

fn invalid(text: String) -> Error {
    Error::new(ErrorKind::InvalidArgument, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_lines_and_members_stand_in_the_file() {
        let mut config = Config { tick_time: Duration::from_millis(100), ..Config::default() };
        config.lines.push(("snapCount".to_owned(), "10".to_owned()));
        let members = [Member { quorum_port: 1, election_port: 2 }];
        let text = config.zoo_cfg(4711, Path::new("/d"), &members);
        for line in [
            "tickTime=100",
            "minSessionTimeout=200",
            "maxSessionTimeout=60000",
            "clientPort=4711",
            "dataDir=/d",
            "server.1=127.0.0.1:1:2",
        ] {
            assert!(text.lines().any(|each| each == line), "{line} is missing in\n{text}");
        }
        assert!(text.ends_with("snapCount=10\n"));
    }

    #[test]
    fn a_bad_setting_is_refused_with_its_value() {
        let refused = |config: Config| config.check().unwrap_err().to_string();
        let with_line = |key: &str, value: &str| Config {
            lines: vec![(key.to_owned(), value.to_owned())],
            ..Config::default()
        };
        assert!(Config::default().check().is_ok());
        assert!(refused(with_line("dataDir", "/x")).contains("dataDir=/x"));
        assert!(refused(with_line("server.1", "x")).contains("server.1=x"));
        assert!(refused(with_line("a", "b\nc")).contains("b\\nc"));
        let zero = Config { tick_time: Duration::ZERO, ..Config::default() };
        assert!(refused(zero).contains("tick_time"));
    }
}
