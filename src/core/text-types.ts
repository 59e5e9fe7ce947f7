/** Whether a MIME type, in lower case and without parameters, is of text files. */
export const isTextType = (type: string): boolean => textType.test(type);

const textType =
  /^text\/|^application\/(?:json|jsonl|x-ndjson|ndjson|xml|xhtml\+xml|javascript|x-javascript|ecmascript|typescript|yaml|x-yaml|toml|sql|graphql|x-sh|x-python|rtf)$|\+(?:json|xml|yaml)$/;
