import type { Passage } from '#core/passages';

/** A passage as answers of the native interface cite it. */
export const citedPassage = ({ dataset, filename, page, range, quote, id, score, text }: Omit<Passage, 'ranks'>) => ({
  dataset,
  filename,
  page,
  range: [...range],
  quote,
  chunk_id: id,
  score,
  text,
});
