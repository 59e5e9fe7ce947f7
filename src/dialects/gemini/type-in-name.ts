/** The MIME type of an address or a file name, from its extension. @returns undefined where it does not tell */
export function typeInName(name: string): string | undefined {
  if (videoPage.test(name)) return 'video/mp4';
  const [path] = name.split(/[?#]/, 1);
  const extension = (/\.(\w{2,5})$/.exec(path!) ?? /\.(\w{2,5})$/.exec(name))?.[1]?.toLowerCase() ?? '';
  return Object.hasOwn(typeByExtension, extension) ? typeByExtension[extension]! : undefined;
}

const videoPage = /^https?:\/\/(?:(?:www|m)\.)?(?:youtube\.com|youtu\.be)\//i;

const typeByExtension: Readonly<Record<string, string>> = {
  png: 'image/png',
  jpg: 'image/jpeg',
  jpeg: 'image/jpeg',
  webp: 'image/webp',
  gif: 'image/gif',
  heic: 'image/heic',
  mp3: 'audio/mp3',
  wav: 'audio/wav',
  mp4: 'video/mp4',
  mov: 'video/quicktime',
  webm: 'video/webm',
  pdf: 'application/pdf',
  txt: 'text/plain',
};
