/** Text as it stands in a page. */
export const escaped = (text: string): string => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');

/** The same, where what stands between backticks is code. */
export const prose = (text: string): string => escaped(text).replaceAll(/`([^`]{1,500})`/g, '<code>$1</code>');

/** A page that needs no script and loads nothing but the style sheet. */
export function page(title: string, body: string): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${escaped(title)}</title>
<link rel="stylesheet" href="/docs.css">
</head>
<body>
${body}
</body>
</html>
`;
}
