//! Owns the opt-in port of a single job: `/metrics` (Prometheus text), `/health`, `/progress`.

use std::{fmt::Write, net::SocketAddr};

use anyhow::{Context, Result};
use axum::{Json, Router, extract::State, http::StatusCode, routing::get};
use canalis_runtime::{JobControl, JobState, ProgressView};

/// Listens on `address` until the process ends.
pub async fn serve(address: SocketAddr, control: JobControl) -> Result<()> {
    let listener = tokio::net::TcpListener::bind(address)
        .await
        .with_context(|| format!("opening the metrics port {address}"))?;
    let app = Router::new()
        .route("/metrics", get(|State(c): State<JobControl>| async move { metrics(&c.progress().view()) }))
        .route("/health", get(|State(c): State<JobControl>| async move { health(&c.progress().view()) }))
        .route("/progress", get(|State(c): State<JobControl>| async move { Json(c.progress().view()) }))
        .with_state(control);
    tokio::spawn(async move {
        if let Err(error) = axum::serve(listener, app).await {
            tracing::error!(%error, "the metrics port failed");
        }
    });
    Ok(())
}

fn health(view: &ProgressView) -> (StatusCode, Json<serde_json::Value>) {
    let healthy = !matches!(view.state, JobState::Failed | JobState::Restarting);
    let code = if healthy { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (code, Json(serde_json::json!({ "state": view.state, "last-error": view.last_error })))
}

/// One metric: name, kind, help.
struct Metric(&'static str, &'static str, &'static str);

const TABLE_METRICS: [Metric; 4] = [
    Metric("canalis_read_changes_total", "counter", "Changes read from the source."),
    Metric("canalis_read_bytes_total", "counter", "Bytes read from the source, decoded."),
    Metric("canalis_filtered_changes_total", "counter", "Changes dropped by filters."),
    Metric("canalis_dead_lettered_changes_total", "counter", "Changes refused before they reached a writer."),
];

fn metrics(view: &ProgressView) -> String {
    let mut out = String::new();
    let head = |out: &mut String, Metric(name, kind, help): &Metric| {
        // Writing to a String cannot fail.
        let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
    };
    for metric in &TABLE_METRICS {
        head(&mut out, metric);
        for (table, t) in &view.tables {
            let value = match metric.0 {
                "canalis_read_changes_total" => t.read,
                "canalis_read_bytes_total" => t.bytes,
                "canalis_filtered_changes_total" => t.filtered,
                _ => t.dead_lettered,
            };
            let label = table.to_string().replace('\\', "\\\\").replace('"', "\\\"");
            let _ = writeln!(out, "{}{{table=\"{label}\"}} {value}", metric.0);
        }
    }
    let singles = [
        (Metric("canalis_written_changes_total", "counter", "Changes durable in the sink."), view.written),
        (Metric("canalis_checkpoint_epoch", "gauge", "Newest durable checkpoint."), view.epoch),
        (Metric("canalis_restarts_total", "counter", "Restarts of the job."), view.restarts),
        (
            Metric("canalis_in_flight_bytes", "gauge", "Bytes between readers and writers."),
            view.in_flight_bytes,
        ),
        (
            Metric("canalis_running", "gauge", "1 while rows flow."),
            u64::from(view.state == JobState::Running),
        ),
    ];
    for (metric, value) in &singles {
        head(&mut out, metric);
        let _ = writeln!(out, "{} {value}", metric.0);
    }
    if let Some(lag) = view.lag_ms {
        let metric =
            Metric("canalis_lag_milliseconds", "gauge", "Commit at the source to commit at the sink.");
        head(&mut out, &metric);
        let _ = writeln!(out, "{} {lag}", metric.0);
    }
    out
}
