//! `docs/simulator.md`, made from the tables that lowering goes by.

use std::fmt::Write as _;

use expect_test::expect_file;

use super::{SPECIAL_REGISTERS, refused, supported};

const HEAD: &str = "\
# What the simulator runs

Made from the simulator's own tables: a test fails where this page and they differ (`UPDATE_EXPECT=1 cargo test -p
stitch-simulator` writes it anew).

A kernel runs if the simulator has every instruction that it can reach. Otherwise its launch is refused, and the message names
the instruction and its line; other kernels of the program run. A modifier that an instruction does not list here is refused
too: none is overlooked.
";

fn page() -> String {
    let mut page = HEAD.to_owned();
    page += "\n## Instructions\n\n| opcode | forms |\n|---|---|\n";
    for entry in supported() {
        let _ = writeln!(page, "| `{}` | {} |", entry.opcode, entry.what);
    }
    page += "\n## Refused\n\n| opcodes | what they are |\n|---|---|\n";
    for entry in refused() {
        let names: Vec<String> = entry.opcodes.iter().map(|name| format!("`{name}`")).collect();
        let _ = writeln!(page, "| {} | {} |", names.join(", "), entry.why);
    }
    page += "\n## Special registers\n\n";
    let names: Vec<String> = SPECIAL_REGISTERS.iter().map(|name| format!("`{name}`")).collect();
    page += &names.join(", ");
    page += ".\n\n`%clock` counts instructions of the warp, not cycles. `%smid` deals blocks to multiprocessors in turn.\n";
    page += "\n## Functions of the device runtime\n\n`vprintf`, `malloc`, `free`, `__assertfail`: `printf`, `malloc`, `new`, \
             `free`, `delete`, `assert`. Kernels\ncan't launch kernels.\n";
    page
}

#[test]
fn the_page_is_up_to_date() {
    expect_file!["../../../../docs/simulator.md"].assert_eq(&page());
}

#[test]
fn nothing_is_both_supported_and_refused() {
    for entry in refused() {
        for opcode in entry.opcodes {
            assert!(supported().iter().all(|s| s.opcode != *opcode), "{opcode}");
        }
    }
}
