/** A database that this version does not open: why, and what to do, in words for whoever runs it. */
export class UnusableDatabase extends Error {}
