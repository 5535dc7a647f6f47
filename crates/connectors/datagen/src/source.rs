//! Owns the source.

use std::sync::Arc;

use async_trait::async_trait;
use canalis_connector_api::{Boundedness, Finding, Source, SourceContext, SourceRestore, SplitEnumerator};
use canalis_types::{Result, TableSchema};

use crate::{enumerator::DatagenEnumerator, options::DatagenOptions, order::order_schema};

pub(crate) struct DatagenSource {
    options: DatagenOptions,
}

impl DatagenSource {
    pub(crate) fn new(options: DatagenOptions) -> Self {
        Self { options }
    }
}

#[async_trait]
impl Source for DatagenSource {
    fn boundedness(&self) -> Boundedness {
        if self.options.changes.is_some() { Boundedness::Bounded } else { Boundedness::Unbounded }
    }

    async fn check(&self) -> Vec<Finding> {
        vec![Finding::ok("source datagen", format!("generates {}", self.options.table))]
    }

    async fn tables(&self) -> Result<Vec<Arc<TableSchema>>> {
        Ok(vec![Arc::new(order_schema(self.options.table.clone()))])
    }

    async fn open(
        &self,
        _ctx: SourceContext,
        restore: Option<SourceRestore>,
    ) -> Result<Box<dyn SplitEnumerator>> {
        let enumerator = match restore {
            None => DatagenEnumerator::new(self.options.clone()),
            Some(restore) => DatagenEnumerator::restore(self.options.clone(), restore)?,
        };
        Ok(Box::new(enumerator))
    }
}
