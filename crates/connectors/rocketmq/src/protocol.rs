//! Owns the remoting protocol: frames, connections, bodies of requests and answers, and messages as brokers store them.

pub(crate) mod body;
pub(crate) mod connection;
pub(crate) mod frame;
pub mod message;

/// Numbers of requests.
pub(crate) mod request {
    pub(crate) const PULL: u16 = 11;
    pub(crate) const QUERY_GROUP_OFFSET: u16 = 14;
    pub(crate) const UPDATE_GROUP_OFFSET: u16 = 15;
    pub(crate) const CREATE_TOPIC: u16 = 17;
    pub(crate) const BROKER_CONFIG: u16 = 26;
    pub(crate) const OFFSET_BY_TIME: u16 = 29;
    pub(crate) const MAX_OFFSET: u16 = 30;
    pub(crate) const MIN_OFFSET: u16 = 31;
    pub(crate) const ROUTE: u16 = 105;
    pub(crate) const CLUSTER: u16 = 106;
    pub(crate) const TOPICS: u16 = 206;
    pub(crate) const SEND_BATCH: u16 = 320;
}

/// Numbers in answers.
pub(crate) mod answer {
    pub(crate) const SUCCESS: i64 = 0;
    pub(crate) const SYSTEM_ERROR: i64 = 1;
    pub(crate) const SYSTEM_BUSY: i64 = 2;
    pub(crate) const SERVICE_NOT_AVAILABLE: i64 = 14;
    pub(crate) const NO_PERMISSION: i64 = 16;
    pub(crate) const TOPIC_NOT_EXIST: i64 = 17;
    pub(crate) const PULL_NOT_FOUND: i64 = 19;
    pub(crate) const PULL_RETRY: i64 = 20;
    pub(crate) const PULL_OFFSET_MOVED: i64 = 21;
    pub(crate) const QUERY_NOT_FOUND: i64 = 22;
    pub(crate) const GROUP_NOT_EXIST: i64 = 26;
    pub(crate) const FLOW_CONTROL: i64 = 215;
}
