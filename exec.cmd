@rem npm runs scripts with cmd.exe on Windows, which has no exec: this stands in for it, so that the launcher can say its sentence.
@node "%~dp0bin\dragoman.js"
