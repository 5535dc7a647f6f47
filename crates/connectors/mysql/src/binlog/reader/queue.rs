//! Owns [`Queue`]: from the reader's thread to the async side, bounded in bytes, and the way to stop the thread.

use std::{
    collections::VecDeque,
    net::{Shutdown, TcpStream},
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use canalis_connector_api::SourceEvent;
use canalis_types::{Error, Result};
use tokio::sync::Notify;

/// Bytes of rows that may wait.
const BUDGET: usize = 6 << 20;
/// Events that may wait, for those that weigh little.
const MAX_EVENTS: usize = 256;

#[derive(Default)]
struct State {
    events: VecDeque<(SourceEvent, usize)>,
    bytes: usize,
    /// The thread has ended; the error has not been handed out yet if it is there.
    ended: bool,
    error: Option<Error>,
    /// The async side wants no more.
    closed: bool,
    socket: Option<TcpStream>,
}

/// Events on their way.
#[derive(Default)]
pub struct Queue {
    state: Mutex<State>,
    changed: Condvar,
    filled: Notify,
}

impl Queue {
    /// An empty queue.
    pub fn new() -> Self {
        Self::default()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // The state is consistent between statements, so a panic elsewhere does not spoil it.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends an event of `bytes`, waiting for room; false when nobody wants it.
    pub fn push(&self, event: SourceEvent, bytes: usize) -> bool {
        let mut state = self.lock();
        while !state.closed && (state.bytes >= BUDGET || state.events.len() >= MAX_EVENTS) {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if state.closed {
            return false;
        }
        state.bytes += bytes;
        state.events.push_back((event, bytes));
        drop(state);
        self.filled.notify_one();
        true
    }

    /// Ends the queue: after what is in it comes `error`.
    pub fn end(&self, error: Option<Error>) {
        let mut state = self.lock();
        state.ended = true;
        if state.error.is_none() {
            state.error = error;
        }
        drop(state);
        self.filled.notify_one();
    }

    /// The next event. Cancel-safe.
    pub async fn pop(&self) -> Result<SourceEvent> {
        loop {
            {
                let mut state = self.lock();
                if let Some((event, bytes)) = state.events.pop_front() {
                    state.bytes -= bytes;
                    self.changed.notify_all();
                    return Ok(event);
                }
                if state.ended || state.closed {
                    let ended = || Error::internal("the binlog reader has ended");
                    return Err(state.error.take().unwrap_or_else(ended));
                }
            }
            self.filled.notified().await;
        }
    }

    /// Keeps the socket that the thread reads, so that [`Queue::close`] can end a read that waits.
    pub fn watch(&self, socket: TcpStream) {
        let mut state = self.lock();
        if state.closed {
            // Already being closed; an error means that the peer was faster.
            let _ = socket.shutdown(Shutdown::Both);
        }
        state.socket = Some(socket);
    }

    /// Tells the thread to end.
    pub fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        if let Some(socket) = state.socket.take() {
            // An error means that the connection is gone already.
            let _ = socket.shutdown(Shutdown::Both);
        }
        drop(state);
        self.changed.notify_all();
        self.filled.notify_one();
    }

    /// Whether the thread is to end.
    pub fn is_closed(&self) -> bool {
        self.lock().closed
    }

    /// Waits for some time; false when the thread is to end.
    pub fn pause(&self, time: Duration) -> bool {
        let deadline = Instant::now() + time;
        let mut state = self.lock();
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if state.closed || left.is_zero() {
                return !state.closed;
            }
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, thread};

    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn a_full_queue_waits_and_an_error_comes_last() {
        let queue = Arc::new(Queue::new());
        let writer = queue.clone();
        let thread = thread::spawn(move || {
            for _ in 0..5 {
                assert!(writer.push(SourceEvent::SplitEnd, BUDGET));
            }
            writer.end(Some(Error::internal("at last")));
        });
        for _ in 0..5 {
            assert!(matches!(queue.pop().await, Ok(SourceEvent::SplitEnd)));
        }
        assert_eq!(queue.pop().await.unwrap_err().message(), "at last");
        assert!(queue.pop().await.is_err());
        thread.join().unwrap();
    }

    #[tokio::test]
    async fn closing_frees_the_writer() {
        let queue = Arc::new(Queue::new());
        assert!(queue.push(SourceEvent::SplitEnd, BUDGET));
        let writer = queue.clone();
        let thread = thread::spawn(move || writer.push(SourceEvent::SplitEnd, 1));
        queue.close();
        assert!(!thread.join().unwrap());
        assert!(!queue.pause(Duration::from_secs(60)));
    }
}
