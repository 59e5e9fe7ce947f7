/**
 * The child's half of the launcher (`bin/runtime.js`): it holds a channel to us, and when it dies, even by kill -9, the channel closes.
 * Does nothing in a process that was started without launcher. Does not keep the process alive.
 *
 * @param then called once, at the latest when the event loop turns; drain and exit there
 */
export function whenLauncherDies(then: () => void): void {
  if (process.connected === undefined) return;
  if (!process.connected) return void setImmediate(then);
  process.once('disconnect', then);
  process.channel?.unref();
}
