/**
 * The server's half of the launcher (`bin/runtime.js`). The launcher holds a channel to the server, which closes when the launcher dies, even by kill -9. Does
 * nothing in a process without a launcher, and does not keep the process alive.
 * @param then called once, never synchronously; drain and exit there
 */
export function whenLauncherDies(then: () => void): void {
  if (process.connected === undefined) return;
  if (!process.connected) return void setImmediate(then);
  process.once('disconnect', then);
  process.channel?.unref();
}
