//! Owns the source: which files and tables there are.

mod enumerator;
mod preview;
mod reader;
mod scan;

use std::{collections::BTreeMap, sync::Arc};

use async_trait::async_trait;
use canalis_connector_api::{
    Boundedness, Finding, PreviewRecord, Source, SourceContext, SourceRestore, SplitEnumerator,
};
use canalis_types::{Column, LogicalType, Result, TableId, TableSchema};
use serde::{Deserialize, Serialize};

use crate::{
    blocking::blocking,
    error::source_io,
    listing,
    options::{Format, SourceOptions},
};
use enumerator::FilesEnumerator;

/// A file to read, as found when the job started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FileEntry {
    pub path: String,
    /// Bytes; what is added later is not read.
    pub size: u64,
    pub table: TableId,
}

/// Files in order of their names, and the structure of each table.
#[derive(Debug, Clone)]
pub(crate) struct Catalog {
    pub files: Vec<FileEntry>,
    pub tables: BTreeMap<TableId, Arc<TableSchema>>,
}

pub(crate) struct FilesSource {
    options: Arc<SourceOptions>,
}

impl FilesSource {
    pub(crate) fn new(options: SourceOptions) -> Self {
        Self { options: Arc::new(options) }
    }
}

impl Catalog {
    /// Looks at the file system. Blocks.
    pub(crate) fn find(options: &SourceOptions) -> Result<Self> {
        let doing = || format!("find files `{}`", options.path);
        let mut files = Vec::new();
        for path in listing::expand(&options.path).map_err(|e| source_io(doing(), e))? {
            let size =
                path.metadata().map_err(|e| source_io(format!("look at {}", path.display()), e))?.len();
            let table = options.table.clone().unwrap_or_else(|| {
                let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
                TableId::parse(&stem).unwrap_or_else(|| TableId::bare(stem))
            });
            let path = path.into_os_string().into_string().map_err(|path| {
                let not_text = std::io::Error::new(std::io::ErrorKind::InvalidInput, "the path is not UTF-8");
                source_io(format!("read {}", path.to_string_lossy()), not_text)
            })?;
            files.push(FileEntry { path, size, table });
        }
        let mut tables = BTreeMap::new();
        for file in &files {
            if !tables.contains_key(&file.table) {
                tables.insert(file.table.clone(), Arc::new(structure(options, file)?));
            }
        }
        Ok(Self { files, tables })
    }
}

/// The declared structure, or what the header of the table's first file says.
fn structure(options: &SourceOptions, file: &FileEntry) -> Result<TableSchema> {
    let mut columns = match &options.columns {
        Some(columns) => columns.clone(),
        None => {
            let names = scan::header(options, file)?.names;
            names.into_iter().map(|name| Column::new(name, LogicalType::Text, true)).collect()
        }
    };
    for name in &options.primary_key {
        let column = columns.iter_mut().find(|c| c.name == *name).ok_or_else(|| {
            canalis_types::Error::new(
                canalis_types::Code::PipelineInvalid,
                format!("`primary-keys`: {} has no column `{name}`", file.path),
            )
        })?;
        column.nullable = false;
    }
    Ok(TableSchema::new(file.table.clone(), columns, options.primary_key.clone()))
}

#[async_trait]
impl Source for FilesSource {
    fn boundedness(&self) -> Boundedness {
        Boundedness::Bounded
    }

    async fn check(&self) -> Vec<Finding> {
        let subject = "source files: path";
        match blocking(|| Catalog::find(&self.options)) {
            Ok(catalog) => {
                let bytes: u64 = catalog.files.iter().map(|f| f.size).sum();
                let found =
                    format!("{} files, {bytes} bytes, {} tables", catalog.files.len(), catalog.tables.len());
                let unreadable = |f: &&FileEntry| std::fs::File::open(&f.path).is_err();
                match blocking(|| catalog.files.iter().find(unreadable).cloned()) {
                    None => vec![Finding::ok(subject, found)],
                    Some(file) => vec![Finding::error(
                        subject,
                        format!("{} cannot be read", file.path),
                        format!(
                            "give the account that runs the job the right to read: chmod o+r '{}'",
                            file.path
                        ),
                    )],
                }
            }
            Err(error) => {
                let remedy = match self.options.format {
                    Format::Csv => {
                        "check `path`, and that every file begins with its header or `csv.header` is false"
                    }
                    Format::Json => "check `path`",
                };
                vec![Finding::error(subject, error.to_string(), remedy)]
            }
        }
    }

    async fn tables(&self) -> Result<Vec<Arc<TableSchema>>> {
        let catalog = blocking(|| Catalog::find(&self.options))?;
        Ok(catalog.tables.into_values().collect())
    }

    async fn open(
        &self,
        _ctx: SourceContext,
        restore: Option<SourceRestore>,
    ) -> Result<Box<dyn SplitEnumerator>> {
        let enumerator = match restore {
            Some(restore) => FilesEnumerator::restore(self.options.clone(), restore)?,
            None => FilesEnumerator::new(self.options.clone(), blocking(|| Catalog::find(&self.options))?),
        };
        Ok(Box::new(enumerator))
    }

    async fn preview(&self, rows: usize) -> Result<Vec<PreviewRecord>> {
        blocking(|| preview::preview(&self.options, rows))
    }
}
