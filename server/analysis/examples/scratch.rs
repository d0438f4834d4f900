//! scratch
use std::time::Instant;
fn main() {
    let mut files: Vec<String> = std::env::args().skip(1).collect();
    let verbose = files.first().is_some_and(|f| f == "-v");
    if verbose { files.remove(0); }
    let mut total = 0; let started = Instant::now(); let mut kernels = 0; let mut findings = 0;
    for file in files {
        let Ok(text) = std::fs::read(&file) else { continue };
        let text = String::from_utf8_lossy(&text);
        total += text.len();
        let t = Instant::now();
        let a = stitch_analysis::Analysis::of(stitch_analysis::Language::Cuda, &text);
        let took = t.elapsed();
        if took.as_millis() > 400 { println!("SLOW {file} {took:?} {}", text.len()); }
        kernels += a.outline().kernels().count(); findings += a.findings().len();
        for k in a.outline().kernels() { println!("K\t{file}\t{}\t{}", text[..k.name_span.start].matches('\n').count()+1, k.name); }
        if verbose { println!("{:#?}", a.outline()); for f in a.findings() { println!("F {} {} {}", f.code, text[..f.span.start].matches('\n').count()+1, f.message); } }
        for f in &a.outline().functions { assert!(text.get(f.span.range()).is_some() && text.get(f.name_span.range()).is_some()); }
        for f in &a.outline().launches { assert!(text.get(f.span.range()).is_some()); }
    }
    eprintln!("{total} bytes {kernels} kernels {findings} findings {:?}", started.elapsed());
}
