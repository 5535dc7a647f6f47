//! Owns cutting the next chunk of a table, on demand and without holding more than the last border.

use canalis_types::{Result, TableId};
use mysql_async::{Conn, Row, prelude::Queryable};

use super::{
    chunks::{Chunk, ChunkKey},
    state::{Even, Plan},
};
use crate::{catalog::Table, options::SourceOptions};

/// Cuts chunks with statements in an ordinary session: borders need no consistent view, because whatever they are, the
/// chunks between them cover every key.
pub(crate) struct Cutter<'a> {
    pub options: &'a SourceOptions,
    pub conn: &'a mut Conn,
    pub table: &'a Table,
}

impl Cutter<'_> {
    /// The next chunk, with the plan for what is left after it; `None` when nothing is left.
    pub(crate) async fn next(&mut self, plan: &Plan, rows: u64) -> Result<Option<(Chunk, Plan)>> {
        match plan {
            Plan::Dealt => Ok(None),
            Plan::Unplanned => {
                let plan = self.plan(rows).await?;
                self.cut(&plan).await.map(Some)
            }
            cutting => self.cut(cutting).await.map(Some),
        }
    }

    fn id(&self) -> &TableId {
        &self.table.schema.id
    }

    async fn plan(&mut self, rows: u64) -> Result<Plan> {
        let key = ChunkKey::choose(self.table, self.options.chunk_key(self.id()));
        let even = if key.is_integer() { self.even(&key, rows).await? } else { None };
        Ok(Plan::Cutting { next: 0, columns: key.names(), lower: None, even })
    }

    /// Equal distances, when the range of the key is about as large as the number of rows.
    async fn even(&mut self, key: &ChunkKey, rows: u64) -> Result<Option<Even>> {
        let answer: Option<(Option<String>, Option<String>)> =
            self.conn.query_first(key.range_statement(self.id())).await.map_err(|e| {
                self.options.endpoint.error(&format!("asking for the key range of {}", self.id()), e)
            })?;
        let Some((Some(min), Some(max))) = answer else { return Ok(None) };
        let (Ok(min), Ok(max)) = (min.parse::<i128>(), max.parse::<i128>()) else { return Ok(None) };
        Ok(even_borders(min, max, rows, self.options))
    }

    async fn cut(&mut self, plan: &Plan) -> Result<(Chunk, Plan)> {
        let Plan::Cutting { next, columns, lower, even } = plan else {
            return Err(canalis_types::Error::internal("a plan that is not cutting was cut"));
        };
        let names: Vec<&str> = columns.iter().map(String::as_str).collect();
        let key = ChunkKey::over(self.table, &names);
        let chunk = |upper| Chunk { number: *next, columns: columns.clone(), lower: lower.clone(), upper };
        let rest = |lower, even| Plan::Cutting {
            next: next + 1,
            columns: columns.clone(),
            lower: Some(lower),
            even,
        };
        if key.is_empty() {
            return Ok((chunk(None), Plan::Dealt));
        }
        if let Some(even) = even {
            if even.next >= even.max {
                return Ok((chunk(None), Plan::Dealt));
            }
            let upper = vec![even.next.to_string()];
            let after = Even { next: even.next + even.step, ..*even };
            return Ok((chunk(Some(upper.clone())), rest(upper, Some(after))));
        }
        let statement = key.walk_statement(self.id(), lower.as_ref(), self.options.chunk_size);
        let row: Option<Row> = self
            .conn
            .query_first(statement)
            .await
            .map_err(|e| self.options.endpoint.error(&format!("cutting {} into chunks", self.id()), e))?;
        let Some(mut row) = row else { return Ok((chunk(None), Plan::Dealt)) };
        let texts: Option<Vec<String>> =
            (0..columns.len()).map(|i| row.take::<Option<String>, _>(i)?).collect();
        // Not reached: the walk leaves out NULL.
        let Some(texts) = texts else { return Ok((chunk(None), Plan::Dealt)) };
        let upper = key.border(&texts);
        Ok((chunk(Some(upper.clone())), rest(upper, None)))
    }
}

/// Borders by arithmetic, or none when the key is sparse or skewed, so that the rows have to be walked.
fn even_borders(min: i128, max: i128, rows: u64, options: &SourceOptions) -> Option<Even> {
    let size = i128::from(options.chunk_size);
    let span = max - min + 1;
    if span <= size {
        // One chunk, whatever the estimate says.
        return Some(Even { next: max, step: size, max });
    }
    if rows == 0 {
        return None;
    }
    // Thousandths are exact enough to compare and to stretch the distance with.
    let permille = span.checked_mul(1000)? / i128::from(rows);
    let bound = |factor: f64| -> i128 {
        let text = format!("{:.0}", (factor * 1000.0).min(1e30));
        text.parse().unwrap_or(i128::MAX)
    };
    if permille < bound(options.even_lower) || permille > bound(options.even_upper) {
        return None;
    }
    let step = (size * permille / 1000).max(size);
    Some(Even { next: min + step - 1, step, max })
}
