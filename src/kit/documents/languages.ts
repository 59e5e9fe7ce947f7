/** Languages of source code, by the ending of the file's name. */
export const languages: Readonly<Record<string, string>> = {
  ada: 'ada', asm: 'asm', awk: 'awk', bash: 'bash', bat: 'bat', c: 'c', cc: 'cpp', clj: 'clojure', cmake: 'cmake', cpp: 'cpp', cs: 'csharp', css: 'css', cxx: 'cpp',
  dart: 'dart', diff: 'diff', dockerfile: 'dockerfile', ex: 'elixir', exs: 'elixir', erl: 'erlang', f90: 'fortran', fs: 'fsharp', go: 'go', gradle: 'groovy',
  graphql: 'graphql', groovy: 'groovy', h: 'c', hcl: 'hcl', hh: 'cpp', hpp: 'cpp', hs: 'haskell', ini: 'ini', java: 'java', jl: 'julia', js: 'javascript',
  jsx: 'jsx', kt: 'kotlin', kts: 'kotlin', less: 'less', lisp: 'lisp', lua: 'lua', m: 'matlab', makefile: 'makefile', mjs: 'javascript', cjs: 'javascript',
  ml: 'ocaml', nix: 'nix', pas: 'pascal', patch: 'diff', php: 'php', pl: 'perl', pm: 'perl', proto: 'protobuf', ps1: 'powershell', py: 'python', r: 'r',
  rb: 'ruby', rs: 'rust', sass: 'sass', scala: 'scala', scss: 'scss', sh: 'bash', sol: 'solidity', sql: 'sql', swift: 'swift', tcl: 'tcl', tex: 'latex',
  tf: 'hcl', toml: 'toml', ts: 'typescript', mts: 'typescript', cts: 'typescript', tsx: 'tsx', v: 'verilog', vb: 'vb', vhdl: 'vhdl', vue: 'vue', xml: 'xml',
  xsl: 'xml', xsd: 'xml', yaml: 'yaml', yml: 'yaml', zig: 'zig', zsh: 'zsh',
}; // prettier-ignore
