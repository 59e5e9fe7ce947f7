/** As of this day `providers/catalogue.json` says what models can do and what they cost. It stands here for those who only tell it; a test holds it against the file. */
export const catalogueDate = '2026-11-18';
