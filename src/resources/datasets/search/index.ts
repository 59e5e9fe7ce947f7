/** The search in datasets: chunks of documents, the index of passages, and how passages are found. */
export { chunked } from './chunker.ts';
export { openEmbeddingCache } from './embedding-cache.ts';
export { openPassageIndex } from './passage-index.ts';
export { openRerank } from './rerank.ts';
export { searchRoutes } from './routes.ts';
export { searchTool } from './tool.ts';
export { openSearch } from './search.ts';
export { openVectorRanker } from './vector-ranker.ts';
export { openVectorTables, type VectorTables } from './vector-tables.ts';
export type { AffordTraining, Chunk, EmbedText, EmbedTexts } from './types.ts';
