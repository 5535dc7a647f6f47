//! Owns the source: snapshot and binlog as one job, consistent without locks, resumable anywhere.

mod check;
mod chunks;
mod decode;
mod enumerator;
mod history;
mod place;
mod plan;
mod preview;
mod reader;
mod session;
mod snapshot;
mod start;
mod state;
mod stream;
mod structure;
mod tracker;
mod views;

use std::sync::Arc;

use async_trait::async_trait;
use canalis_connector_api::{
    Boundedness, Finding, Options, PreviewRecord, Source, SourceContext, SourceRestore, SplitEnumerator,
};
use canalis_types::{Result, TableSchema};

use crate::{
    ServerInfo,
    catalog::{self, Mapping},
    options::SourceOptions,
};

/// A configured source.
pub(crate) struct MySqlSource {
    options: SourceOptions,
}

impl MySqlSource {
    pub(crate) fn new(options: &Options) -> Result<Self> {
        Ok(Self { options: SourceOptions::parse(options)? })
    }
}

fn mapping(options: &SourceOptions, info: &ServerInfo) -> Mapping {
    Mapping { flavor: info.flavor, tinyint1: options.tinyint1, comments: options.comments }
}

#[async_trait]
impl Source for MySqlSource {
    fn boundedness(&self) -> Boundedness {
        if self.options.startup.has_stream() { Boundedness::Unbounded } else { Boundedness::Bounded }
    }

    async fn check(&self) -> Vec<Finding> {
        check::check(&self.options).await
    }

    async fn tables(&self) -> Result<Vec<Arc<TableSchema>>> {
        let options = &self.options;
        let (mut conn, info) = session::connect(options).await?;
        let matches =
            catalog::discover(&options.endpoint, &mut conn, &options.include, options.exclude.as_ref())
                .await?;
        let mut schemas = Vec::with_capacity(matches.len());
        for found in matches {
            let table =
                catalog::load(&options.endpoint, &mut conn, &found.id, mapping(options, &info)).await?;
            schemas.push(table.schema);
        }
        Ok(schemas)
    }

    async fn open(
        &self,
        ctx: SourceContext,
        restore: Option<SourceRestore>,
    ) -> Result<Box<dyn SplitEnumerator>> {
        Ok(match restore {
            None => Box::new(enumerator::Enumerator::begin(self.options.clone(), &ctx).await?),
            Some(restore) => {
                Box::new(enumerator::Enumerator::restore(self.options.clone(), &ctx, restore).await?)
            }
        })
    }

    async fn preview(&self, rows: usize) -> Result<Vec<PreviewRecord>> {
        preview::preview(&self.options, self.tables().await?, rows).await
    }
}
