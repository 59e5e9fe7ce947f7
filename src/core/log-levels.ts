/** What may be asked of the log, from all to little: a level is logged with all that are worse. */
export const logLevels = ['trace', 'debug', 'info', 'warn', 'error', 'fatal'] as const;

export type LogLevel = (typeof logLevels)[number];
