//! Owns what an order looks like: every cell is a function of the seed, the order's number and how often it was updated.

use std::sync::Arc;

use arrow_array::{
    ArrayRef, Decimal128Array, Int32Array, Int64Array, RecordBatch, TimestampMicrosecondArray,
    builder::StringBuilder,
};
use canalis_batch::{ChangeBatch, arrow_schema, cell_to_text};
use canalis_types::{Column, Error, LogicalType, Result, RowKind, TableId, TableSchema};

use crate::schedule::mix64;

/// 2026-01-01 00:00:00 in microseconds: when the first order was made.
const FIRST_CREATED: i64 = 1_767_225_600_000_000;
/// Microseconds between two orders.
const BETWEEN_ORDERS: i64 = 137_000;
/// Microseconds between two updates of an order.
const BETWEEN_UPDATES: i64 = 61_007_000;

const PRODUCTS: [&str; 12] = [
    "espresso beans 1 kg",
    "pour-over kettle",
    "paper filters, 100",
    "hand grinder",
    "oat milk",
    "ceramic mug \"Nord\"",
    "travel cup",
    "cold brew bottle",
    "milk thermometer",
    "descaler",
    "茶壶",
    "crème brûlée syrup",
];
const STATUSES: [&str; 6] = ["NEW", "PAID", "PACKED", "SHIPPED", "DELIVERED", "CLOSED"];
const NOTES: [&str; 8] = [
    "",
    "leave at the door",
    "gift, please wrap",
    "call \"before\" delivery",
    "line one\nline two",
    "送货上门",
    "no nuts; no tea",
    "für Müller & Söhne",
];
const DOMAINS: [&str; 4] = ["example.com", "example.org", "example.net", "mail.example.com"];

/// Structure of the table of orders.
pub fn order_schema(table: TableId) -> TableSchema {
    use LogicalType::{Decimal, Int32, Int64, Text, Timestamp, Varchar};
    let column = |name: &str, ty: LogicalType| Column::new(name, ty, false);
    let columns = vec![
        column("id", Int64),
        column("customer_id", Int64),
        column("customer_email", Varchar { length: 64 }),
        column("product", Varchar { length: 40 }),
        column("quantity", Int32),
        column("unit_price", Decimal { precision: 10, scale: 2 }),
        column("status", Varchar { length: 12 }),
        Column::new("note", Text, true),
        column("created_at", Timestamp { precision: 3 }),
        column("updated_at", Timestamp { precision: 3 }),
    ];
    TableSchema::new(table, columns, vec!["id".into()])
}

/// Canonical texts of an order's cells in the order of the columns; `None` is NULL.
///
/// # Errors
/// Internal only.
pub fn order_texts(seed: u64, order: u64, updates: u32) -> Result<Vec<Option<String>>> {
    let schema = Arc::new(order_schema(TableId::bare("orders")));
    let mut columns = OrderColumns::with_capacity(1);
    columns.push(RowKind::Insert, seed, order, updates);
    let batch = columns.finish(&schema)?;
    let cell = |(at, column): (usize, &Column)| cell_to_text(batch.rows().column(at), &column.ty, 0);
    Ok(schema.columns.iter().enumerate().map(cell).collect())
}

/// Columns of a batch under way.
pub(crate) struct OrderColumns {
    id: Vec<i64>,
    customer_id: Vec<i64>,
    customer_email: StringBuilder,
    product: StringBuilder,
    quantity: Vec<i32>,
    unit_price: Vec<i128>,
    status: StringBuilder,
    note: StringBuilder,
    created_at: Vec<i64>,
    updated_at: Vec<i64>,
    kinds: Vec<RowKind>,
    scratch: String,
}

/// One of a list, by a random number.
fn pick<'a>(list: &[&'a str], random: u64) -> &'a str {
    let at = usize::try_from(random % list.len() as u64).unwrap_or_default();
    list[at]
}

/// A number below `limit` out of some bits of a random one.
fn small(random: u64, shift: u32, limit: u32) -> u32 {
    u32::try_from((random >> shift) % u64::from(limit)).unwrap_or_default()
}

impl OrderColumns {
    pub(crate) fn with_capacity(rows: usize) -> Self {
        Self {
            id: Vec::with_capacity(rows),
            customer_id: Vec::with_capacity(rows),
            customer_email: StringBuilder::with_capacity(rows, rows * 28),
            product: StringBuilder::with_capacity(rows, rows * 18),
            quantity: Vec::with_capacity(rows),
            unit_price: Vec::with_capacity(rows),
            status: StringBuilder::with_capacity(rows, rows * 9),
            note: StringBuilder::with_capacity(rows, rows * 18),
            created_at: Vec::with_capacity(rows),
            updated_at: Vec::with_capacity(rows),
            kinds: Vec::with_capacity(rows),
            scratch: String::with_capacity(64),
        }
    }

    /// Appends a row: what `order` looks like after `updates` updates.
    pub(crate) fn push(&mut self, kind: RowKind, seed: u64, order: u64, updates: u32) {
        let number = i64::try_from(order).unwrap_or(i64::MAX - 1);
        let fixed = mix64(seed ^ mix64(order.wrapping_add(1)));
        let varying = mix64(fixed.wrapping_add(u64::from(updates)));
        let customer = i64::from(small(fixed, 0, 100_000)) + 1;
        self.kinds.push(kind);
        self.id.push(number + 1);
        self.customer_id.push(customer);
        self.scratch.clear();
        self.scratch.push_str("customer");
        self.scratch.push_str(itoa::Buffer::new().format(customer));
        self.scratch.push('@');
        // One customer has one address.
        self.scratch.push_str(pick(&DOMAINS, customer.unsigned_abs()));
        self.customer_email.append_value(&self.scratch);
        self.product.append_value(pick(&PRODUCTS, fixed >> 20));
        self.quantity.push(i32::try_from(small(varying, 0, 20)).unwrap_or_default() + 1);
        self.unit_price.push(i128::from(small(varying, 8, 99_900)) + 100);
        let status = usize::try_from(updates).unwrap_or(usize::MAX).min(STATUSES.len() - 1);
        self.status.append_value(STATUSES[status]);
        match small(varying, 32, 4) {
            0 => self.note.append_null(),
            _ => self.note.append_value(pick(&NOTES, varying >> 40)),
        }
        let created = number.wrapping_mul(BETWEEN_ORDERS).wrapping_add(FIRST_CREATED);
        self.created_at.push(created);
        self.updated_at.push(created.wrapping_add(i64::from(updates) * BETWEEN_UPDATES));
    }

    /// Makes a batch of the rows.
    pub(crate) fn finish(mut self, schema: &Arc<TableSchema>) -> Result<ChangeBatch> {
        let wrong = |e| Error::internal("generated columns do not fit the table").with_source(e);
        let price = Decimal128Array::from(self.unit_price).with_precision_and_scale(10, 2).map_err(wrong)?;
        let columns: Vec<ArrayRef> = vec![
            Arc::new(Int64Array::from(self.id)),
            Arc::new(Int64Array::from(self.customer_id)),
            Arc::new(self.customer_email.finish()),
            Arc::new(self.product.finish()),
            Arc::new(Int32Array::from(self.quantity)),
            Arc::new(price),
            Arc::new(self.status.finish()),
            Arc::new(self.note.finish()),
            Arc::new(TimestampMicrosecondArray::from(self.created_at)),
            Arc::new(TimestampMicrosecondArray::from(self.updated_at)),
        ];
        let rows = RecordBatch::try_new(arrow_schema(schema), columns).map_err(wrong)?;
        ChangeBatch::new(schema.clone(), rows, self.kinds)
    }
}
