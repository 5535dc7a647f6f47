//! The checks of this repository that no other tool does: `cargo xtask tidy`, `cargo xtask licenses` and
//! `cargo xtask fuzz`.

mod fuzz;
mod licenses;
mod metadata;
mod rules;
mod spdx;
mod tree;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::metadata::Metadata;
use crate::rules::error_pages::KnownCode;
use crate::tree::{Problem, Tree};

const USAGE: &str = "\
usage: cargo xtask COMMAND

  tidy       crate directions, file sizes, module docs, error pages, lints, links, paths of machines
  licenses   licences of all dependencies against the allow-list
  fuzz [TARGET] [--seconds N]
             gives the fuzz targets (or one) made-up input for N seconds each (60)";

fn main() -> ExitCode {
    let command = std::env::args().nth(1).unwrap_or_default();
    let checked = match command.as_str() {
        "tidy" => tidy(),
        "licenses" => licenses(),
        "fuzz" => fuzz(&std::env::args().skip(2).collect::<Vec<_>>()),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match checked {
        Ok(problems) if problems.is_empty() => ExitCode::SUCCESS,
        Ok(problems) => {
            for problem in &problems {
                println!("{problem}");
            }
            println!("{command}: {} problems", problems.len());
            ExitCode::FAILURE
        }
        Err(reason) => {
            eprintln!("{command}: {reason}");
            ExitCode::FAILURE
        }
    }
}

fn tidy() -> Result<Vec<Problem>, String> {
    let root = repository();
    let tree = Tree::read(&root)?;
    let metadata = Metadata::read(&root)?;
    let codes = KnownCode::all();
    let long = rules::files::long_files(&tree);
    for note in &long {
        println!("note: {note}");
    }
    let problems = rules::check(&tree, &metadata, &codes);
    println!(
        "tidy: {} files, {} crates, {} error codes, {} files to think about",
        tree.files.len(),
        metadata.members().count(),
        codes.len(),
        long.len()
    );
    Ok(problems)
}

fn licenses() -> Result<Vec<Problem>, String> {
    let metadata = Metadata::read(&repository())?;
    let problems = licenses::check(&metadata);
    println!("licenses: {} third-party packages", metadata.third_party().count());
    Ok(problems)
}

fn fuzz(arguments: &[String]) -> Result<Vec<Problem>, String> {
    fuzz::run(&repository(), &fuzz::Request::parse(arguments)?)
}

fn repository() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_owned()
}
