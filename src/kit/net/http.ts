/**
 * Node's HTTP module. An `import` of it reads every member that it exports, and with `WebSocket` loads all of the undici that Node has inside: 3 MB of memory, and
 * 28 of some 1,000 ms of the start.
 */
export const { get, METHODS, validateHeaderName, validateHeaderValue } = process.getBuiltinModule('node:http');
