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
        Ok(even_borders(min, max, rows, &Evenness::of(self.options)))
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

/// How large chunks are, and how large the range of a key may be beside the number of rows, in thousandths.
struct Evenness {
    chunk_size: u64,
    least_permille: i128,
    most_permille: i128,
}

impl Evenness {
    fn of(options: &SourceOptions) -> Self {
        // Text is the way from a float to a number of 128 bits that needs no cast.
        let permille =
            |factor: f64| format!("{:.0}", (factor * 1000.0).min(1e30)).parse().unwrap_or(i128::MAX);
        Self {
            chunk_size: options.chunk_size,
            least_permille: permille(options.even_lower),
            most_permille: permille(options.even_upper),
        }
    }
}

/// Borders by arithmetic, or none when the key is sparse or skewed, so that the rows have to be walked.
fn even_borders(min: i128, max: i128, rows: u64, evenness: &Evenness) -> Option<Even> {
    let size = i128::from(evenness.chunk_size);
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
    if permille < evenness.least_permille || permille > evenness.most_permille {
        return None;
    }
    let step = (size * permille / 1000).max(size);
    Some(Even { next: min + step - 1, step, max })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ky_08_only_even_keys_are_cut_by_arithmetic() {
        let evenness = Evenness { chunk_size: 100, least_permille: 50, most_permille: 10_000 };
        let max_unsigned = i128::from(u64::MAX);
        for (min, max, rows, expect) in [
            // Dense: the first border closes a hundred rows.
            (1, 1000, 1000, Some((100, 100))),
            (-500, 499, 1000, Some((-401, 100))),
            // Every other number: twice the distance.
            (0, 1998, 1000, Some((198, 199))),
            // One chunk, whatever the estimate says.
            (1, 100, 0, Some((100, 100))),
            (7, 7, 5_000_000, Some((7, 100))),
            // Sparse, or nothing known: walked.
            (1, 9_000_000_000_000_000_000, 1001, None),
            (0, max_unsigned, 4, None),
            (1, 1000, 0, None),
            (1, 1000, 1_000_000, None),
            // Unsigned to the last number.
            (max_unsigned - 999, max_unsigned, 1000, Some((max_unsigned - 900, 100))),
        ] {
            let got = even_borders(min, max, rows, &evenness).map(|even| (even.next, even.step));
            assert_eq!(got, expect, "{min}..{max} with {rows} rows");
        }
    }
}
