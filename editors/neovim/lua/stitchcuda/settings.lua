---@meta

-- Generated from the server's configuration (server/session/src/config). UPDATE_EXPECT=1 with the tests of
-- stitch-session rewrites it.

---@class stitchcuda.Config
---Results kept on disk, so that the same text is not compiled twice.
---@field cache? stitchcuda.Config.cache
---Type errors between keystrokes, where clang is installed.
---@field clang? stitchcuda.Config.clang
---Lines above kernels and launches, with what can be done there.
---@field codeLens? stitchcuda.Config.codeLens
---When and how long files are compiled.
---@field compile? stitchcuda.Config.compile
---Findings as the editor's diagnostics.
---@field diagnostics? stitchcuda.Config.diagnostics
---Which files are looked into.
---@field files? stitchcuda.Config.files
---The table shown for a kernel under the pointer.
---@field hover? stitchcuda.Config.hover
---Numbers at the end of a line: registers, occupancy, spills.
---@field inlayHints? stitchcuda.Config.inlayHints
---What the server writes down about itself.
---@field log? stitchcuda.Config.log
---The model that plans and codes, behind an endpoint that speaks OpenAI's chat completions. Its key is no setting: it comes from the variable `STITCHCUDA_API_KEY`, else `OPENAI_API_KEY`, and is never written down.
---@field model? stitchcuda.Config.model
---The compiler that has the last word on CUDA code.
---@field nvcc? stitchcuda.Config.nvcc
---Theoretical occupancy.
---@field occupancy? stitchcuda.Config.occupancy
---What else is done when a file is saved.
---@field onSave? stitchcuda.Config.onSave
---What plans and codes, and how much an optimisation may take.
---@field optimize? stitchcuda.Config.optimize
---Runs on the simulator.
---@field simulator? stitchcuda.Config.simulator
---Rules over the code's syntax, which need no compiler.
---@field staticRules? stitchcuda.Config.staticRules
---How much a verification may take.
---@field verify? stitchcuda.Config.verify
---Another machine, whose device runs, verifies and profiles what is edited here.
---@field worker? stitchcuda.Config.worker
---The device that code is compiled for, and numbers are about: `auto` (the first GPU of this machine, if it has one), `cuda:N`, a simulated one as `sim:NAME`, or for PyTorch code `cpu`. With `worker.command` it is a device of the machine that the command leads to; a `stitchcuda.toml` may have both in one table: `device.name` and `device.command`.
---@field device? string

---Results kept on disk, so that the same text is not compiled twice.
---@class stitchcuda.Config.cache
---Where results are kept. When unset, `results` in the user's cache folder (`~/.cache/stitchcuda`, or `STITCHCUDA_CACHE_DIR`).
---@field folder? string
---How many megabytes results may take. The least recently used go first. 0 keeps none.
---@field sizeLimitMegabytes? integer

---Type errors between keystrokes, where clang is installed.
---@class stitchcuda.Config.clang
---Whether clang checks a CUDA file while you type. What nvcc says on save replaces what clang said.
---@field enable? "auto"|"on"|"off"
---The `clang` to use: a path, or a name to look for in `PATH`. When unset, the newest clang in `PATH` that can check CUDA.
---@field path? string

---Lines above kernels and launches, with what can be done there.
---@class stitchcuda.Config.codeLens
---Show the lines above kernels and launches.
---@field enable? boolean

---When and how long files are compiled.
---@class stitchcuda.Config.compile
---Compile a file when it is saved, for errors, warnings, registers and spills. Off leaves the static rules only.
---@field onSave? boolean
---How many seconds one compile may take before it is ended.
---@field timeLimitSeconds? integer

---Findings as the editor's diagnostics.
---@class stitchcuda.Config.diagnostics
---Show findings as diagnostics. Hover, hints and the command line show them all the same.
---@field enable? boolean
---How severe each finding is, by its code: `{ "static/double-literal" = "off", "static/*" = "hint" }`. A `*` stands for any text. A code's own entry wins over a pattern, and a longer pattern over a shorter one. A pattern leaves alone what is off by default; a code's own entry turns it on. Entries of all sources are put together.
---@field severity? table<string, "off"|"hint"|"information"|"warning"|"error">

---Which files are looked into.
---@class stitchcuda.Config.files
---Files of more megabytes than this are kept in step with the editor, but not parsed.
---@field sizeLimitMegabytes? integer

---The table shown for a kernel under the pointer.
---@class stitchcuda.Config.hover
---Show what is known of a kernel, and the page of a finding, under the pointer.
---@field enable? boolean

---Numbers at the end of a line: registers, occupancy, spills.
---@class stitchcuda.Config.inlayHints
---Show numbers at the end of a line. At most one hint a line.
---@field enable? boolean
---What becomes of a number when the code it was measured on was edited since.
---@field stale? "dim"|"hide"
---The least part that a line must have to get a hint of its time: of the GPU's time, or of the samples of its kernel. 0 shows all of them.
---@field threshold? number

---What the server writes down about itself.
---@class stitchcuda.Config.log
---A file to write to. When unset, messages go to the editor, and warnings and errors to the standard error stream.
---@field file? string
---How much is written. Never the text of your files.
---@field level? "error"|"warn"|"info"|"debug"|"trace"

---The model that plans and codes, behind an endpoint that speaks OpenAI's chat completions. Its key is no setting: it comes from the variable `STITCHCUDA_API_KEY`, else `OPENAI_API_KEY`, and is never written down.
---@class stitchcuda.Config.model
---The base address of the endpoint, with its version: `http://127.0.0.1:8000/v1`. When unset, `OPENAI_BASE_URL`; without that, OpenAI's own, if there is a key in `STITCHCUDA_API_KEY` or `OPENAI_API_KEY`.
---@field endpoint? string
---How many tokens one answer may have, thinking included. When unset, the endpoint decides.
---@field maxTokens? integer
---The model, as the endpoint calls it. When unset, the only one that the endpoint has.
---@field name? string
---How much chance there is in an answer. When unset, the endpoint decides.
---@field temperature? number
---How many seconds one question may take, retries and thinking included.
---@field timeLimitSeconds? integer

---The compiler that has the last word on CUDA code.
---@class stitchcuda.Config.nvcc
---The architecture to compile for: one like `sm_90`, or `auto` (that of the device; without a device, that of `compile_commands.json`; without either, a stated default).
---@field architecture? string
---Flags for `nvcc` after all others, one an entry. Relative paths in them start at the folder of the compiled file's command; write `${workspaceFolder}/include` to be sure.
---@field extraFlags? string[]
---The `nvcc` to use: a path, or a name to look for in `PATH`. When unset, it is looked for in `CUDA_HOME`, `CUDA_PATH`, `PATH`, `/usr/local/cuda`, the active Python environment and the toolkits that `stitchcuda toolchain install` made.
---@field path? string

---Theoretical occupancy.
---@class stitchcuda.Config.occupancy
---Threads in a block, for a kernel whose launch is not known. The number shown says that it was assumed.
---@field assumedBlockSize? integer

---What else is done when a file is saved.
---@class stitchcuda.Config.onSave
---Whether a CUDA program is profiled again when its file is saved. In a workspace that is not trusted nothing is run.
---@field profile? "auto"|"always"|"never"

---What plans and codes, and how much an optimisation may take.
---@class stitchcuda.Config.optimize
---How many candidates a run may try.
---@field attempts? integer
---What plans and writes code.
---@field engine? "auto"|"builtin"|"llm"
---How many minutes a run may take.
---@field minutes? integer
---How many tokens a run may spend on a model, sent and received together.
---@field tokens? integer

---Runs on the simulator.
---@class stitchcuda.Config.simulator
---Which defects the simulator looks for in every run: `all`; only reads of `memory` that nothing has written; or `none`. Accesses out of bounds, misaligned ones and the like stop a kernel in any case.
---@field checks? "none"|"memory"|"all"

---Rules over the code's syntax, which need no compiler.
---@class stitchcuda.Config.staticRules
---Check the static rules while you type. Single rules are turned off with `diagnostics.severity`.
---@field enable? boolean

---How much a verification may take.
---@class stitchcuda.Config.verify
---How many seconds taking the times of PyTorch code may take, while it has the device alone. It ends before, as soon as the interval of the speedup is narrower than 1 % on either side, or can't become so.
---@field timingSeconds? number

---Another machine, whose device runs, verifies and profiles what is edited here.
---@class stitchcuda.Config.worker
---The command that gives a `stitchcuda worker` on its standard streams, one word an entry: `["ssh", "gpu01", "stitchcuda", "worker"]`. In a `stitchcuda.toml` also written `device.command`. Empty: this machine. `docs/worker.md` in the source has more.
---@field command? string[]
---How many seconds that machine may be silent before it counts as stalled; while it works it is heard of three times in that time. In a `stitchcuda.toml` also written `device.patienceSeconds`.
---@field patienceSeconds? integer
