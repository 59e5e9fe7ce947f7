/** Why the server cannot listen, for the operator. */
export function listeningProblem(error: NodeJS.ErrnoException, { host, port }: { host: string; port: number }): string {
  return sentences[error.code ?? '']?.(host, port) ?? error.message;
}

const sentences: Readonly<Record<string, (host: string, port: number) => string>> = {
  EADDRINUSE: (host, port) => `Port ${port} of ${host} is in use: stop the program that uses it, or choose another with PORT or --port.`,
  EACCES: (_host, port) => `Port ${port} may not be used by this user: choose one above 1023 with PORT or --port.`,
  EADDRNOTAVAIL: (host) => `${host} is no address of this machine: choose another with HOST or --host.`,
  ENOTFOUND: (host) => `${host} has no address: choose another with HOST or --host.`,
};
