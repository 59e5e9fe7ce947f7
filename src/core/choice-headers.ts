/** The headers by which a client makes choices for one request. They are the same for every interface, so dialects need not know them. */
export const choiceHeaders = { targets: 'x-dragoman-targets', tags: 'x-dragoman-tags', strict: 'x-dragoman-strict', cache: 'x-dragoman-cache' } as const;
