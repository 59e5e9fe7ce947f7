/** Log levels, from the most to the least verbose: each includes all that are more severe. */
export const logLevels = ['trace', 'debug', 'info', 'warn', 'error', 'fatal'] as const;

export type LogLevel = (typeof logLevels)[number];
