//! Owns the preview of tables: their first rows, by the select list and the decoder of the snapshot.

use std::sync::Arc;

use canalis_connector_api::{Decoded, PreviewRecord, RawRecord, SplitMode};
use canalis_types::{Result, TableSchema};

use super::{
    decode::{RowDecoder, fields, select_list},
    session::{connect, connect_readers, on_a_thread},
};
use crate::{options::SourceOptions, quote, wire::Connection};

/// The first rows of the tables, about as many of each.
pub(super) async fn preview(
    options: &SourceOptions,
    schemas: Vec<Arc<TableSchema>>,
    rows: usize,
) -> Result<Vec<PreviewRecord>> {
    let (_, info) = connect(options).await?;
    let mut sessions = connect_readers(&options.endpoint, info.flavor, 1).await?;
    on_a_thread(move || {
        let mut records = Vec::new();
        let Some(session) = sessions.first_mut() else { return Ok(records) };
        for (at, schema) in schemas.iter().enumerate() {
            let share = (rows - records.len()).div_ceil(schemas.len() - at);
            if share == 0 {
                break;
            }
            first_rows(session, schema, share, &mut records)?;
        }
        Ok(records)
    })
    .await
}

fn first_rows(
    session: &mut Connection,
    schema: &Arc<TableSchema>,
    most: usize,
    records: &mut Vec<PreviewRecord>,
) -> Result<()> {
    let failed = |error: crate::wire::WireError| error.into_error(format!("reading rows of {}", schema.id));
    let key: Vec<String> = schema.primary_key.iter().map(|name| quote::ident(name)).collect();
    let order = if key.is_empty() { String::new() } else { format!(" ORDER BY {}", key.join(", ")) };
    let statement = format!("{} FROM {}{order} LIMIT {most}", select_list(schema), quote::table(&schema.id));
    let mut decoder = RowDecoder::new(schema, 1);
    session.send_query(&statement).map_err(failed)?;
    let mut rows = session.rows().map_err(failed)?;
    let mut number = 0;
    while let Some(row) = rows.next_row().map_err(failed)? {
        number += 1;
        let raw = RawRecord { value: Some(fields(row, schema.columns.len())), ..RawRecord::default() };
        decoder.row(row)?;
        let (batch, letters) = decoder.finish()?;
        let decoded = match letters.into_iter().next() {
            Some(letter) => Decoded::Undecodable(Box::new(letter)),
            None => Decoded::Rows(vec![batch]),
        };
        records.push(PreviewRecord {
            place: format!("{}, row {number}", schema.id),
            raw: Some(raw),
            structure: Vec::new(),
            decoded,
            mode: SplitMode::Snapshot,
        });
    }
    Ok(())
}
