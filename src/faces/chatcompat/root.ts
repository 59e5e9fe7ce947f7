export const root = '/server/chatcompat/v1';
