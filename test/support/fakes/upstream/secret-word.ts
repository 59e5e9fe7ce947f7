/** Stands in every refusal and in the headers a provider should keep to itself: whoever finds it in an answer of ours has found a leak. */
export const secretWord = 'internal-node-7f3a.upstream.example';
