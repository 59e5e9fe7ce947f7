import { Type } from 'typebox';

/** A password that somebody chooses. */
export const newPassword = Type.String({ minLength: 8, maxLength: 256, description: 'Kept as a salted hash, and never shown.' });
