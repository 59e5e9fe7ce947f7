/** What people type to run this program: from a clone of the source, or as the installed package. */
export const program = import.meta.url.endsWith('.ts') ? 'node bin/dragoman.js' : 'dragoman';
