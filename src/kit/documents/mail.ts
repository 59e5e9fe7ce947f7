import PostalMime, { type Address, type Email } from 'postal-mime';
import { htmlToMarkdown } from './html.ts';
import { Markdown, type Converted } from './markdown.ts';
import { corrupt } from './refusal.ts';

/** A mail: its head as lines, then its text. Its attachments are converted by whoever asked, each by itself. */
export async function convertMail(bytes: Uint8Array): Promise<Converted> {
  const mail = await parsed(bytes);
  const markdown = new Markdown();
  const subject = mail.subject?.trim().replace(/\s+/g, ' ');
  if (subject) markdown.block(`# ${subject}`);
  const head = [
    ['From', addresses(mail.from ? [mail.from] : [])],
    ['To', addresses(mail.to)],
    ['Cc', addresses(mail.cc)],
    ['Date', mail.date],
  ].flatMap(([name, value]) => (value ? [`${name}: ${value}`] : []));
  markdown.block(head.join('\n'));
  markdown.block(mail.html ? htmlToMarkdown(mail.html) : (mail.text ?? '').trim());
  return {
    text: markdown.toString(),
    places: [],
    ...(subject ? { title: subject } : {}),
    attachments: mail.attachments.map(
      ({ filename, mimeType }, at) => filename ?? (mimeType === 'message/rfc822' ? `mail ${at + 1}.eml` : `attachment ${at + 1}`),
    ),
  };
}

export async function attachmentOf(bytes: Uint8Array, index: number): Promise<{ readonly bytes: Uint8Array; readonly filename: string }> {
  const found = (await parsed(bytes)).attachments[index];
  if (!found) throw corrupt('the mail has no such attachment');
  const { content } = found;
  return {
    bytes: typeof content === 'string' ? Buffer.from(content) : new Uint8Array(content),
    filename: found.filename ?? (found.mimeType === 'message/rfc822' ? 'mail.eml' : ''),
  };
}

/** Without the pictures that its text shows. */
async function parsed(bytes: Uint8Array): Promise<Email> {
  try {
    const mail = await PostalMime.parse(bytes, { forceRfc822Attachments: true, maxNestingDepth: 50, maxHeadersSize: 2 ** 20 });
    return { ...mail, attachments: mail.attachments.filter(({ related }) => !related) };
  } catch (error) {
    throw corrupt('its parts cannot be read as those of a mail', error);
  }
}

function addresses(list: readonly Address[] | undefined): string {
  const all = (list ?? []).flatMap((one) => one.group ?? [one]);
  return all.map(({ name, address }) => (name && address ? `${name} <${address}>` : name || (address ?? ''))).join(', ');
}
