import { Type } from 'typebox';

/** A password that somebody chooses. */
export const newPassword = Type.String({ minLength: 8, maxLength: 256, description: 'The new password: it is kept as a salted hash, and never shown.' });
