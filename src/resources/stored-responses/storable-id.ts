/** Whether the database may have this id: it refuses a text with U+0000, and a look-up of one fails instead of finding nothing. */
export const isStorable = (id: string): boolean => !id.includes('\0');
