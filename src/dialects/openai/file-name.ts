/** Names of files by their MIME types: both wires refuse base64 without a name. https://github.com/openai/openai-agents-python/issues/1513 */
const extensions: Readonly<Record<string, string>> = {
  'application/pdf': 'pdf',
  'application/json': 'json',
  'application/xml': 'xml',
  'application/rtf': 'rtf',
  'application/msword': 'doc',
  'application/vnd.openxmlformats-officedocument.wordprocessingml.document': 'docx',
  'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet': 'xlsx',
  'application/vnd.openxmlformats-officedocument.presentationml.presentation': 'pptx',
  'text/plain': 'txt',
  'text/markdown': 'md',
  'text/csv': 'csv',
  'text/html': 'html',
};

/** @param mediaType of a file without a name */
export const fileNameFor = (mediaType = 'application/pdf'): string => `document.${extensions[mediaType.split(';', 1)[0]!.trim().toLowerCase()] ?? 'bin'}`;
