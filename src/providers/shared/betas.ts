/** The beta features that a client asks for, in the value of its header, without those that the provider does not know. */
export function knownBetas(asked: string, refused: readonly string[]): { readonly betas: readonly string[]; readonly lost: readonly string[] } {
  const all = [...new Set(asked.split(',').map((one) => one.trim()))].filter((one) => one !== '');
  return { betas: all.filter((one) => !refused.includes(one)), lost: all.filter((one) => refused.includes(one)) };
}

/** The request with a warning of the beta features that are left out. @param header its name */
export const warningOfBetas = <Request extends { readonly ignored: readonly string[] }>(request: Request, header: string, lost: readonly string[]): Request =>
  lost.length === 0 ? request : { ...request, ignored: [...request.ignored, `${header}: the provider does not know ${lost.join(', ')}.`] };
