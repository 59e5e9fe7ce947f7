/** The headers in which a client chooses something for one request, whatever the interface: no dialect has to know of it. */
export const choiceHeaders = { targets: 'x-dragoman-targets', tags: 'x-dragoman-tags', strict: 'x-dragoman-strict', cache: 'x-dragoman-cache' } as const;
