/**
 * The date of `providers/catalogue.json`, which lists the abilities and prices of models. A constant for modules that do not load the file; a test compares the
 * two.
 */
export const catalogueDate = '2026-11-23';
