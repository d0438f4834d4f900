std = 'luajit'
globals = { 'vim' }
max_line_length = 120
-- Comments are as long as in the rest of the repository.
max_comment_line_length = 140
exclude_files = { 'lua/stitchcuda/settings.lua' }
