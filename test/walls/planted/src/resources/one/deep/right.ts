import '../planted.ts';
import '../../shared.ts';
import '../../../store/planted.ts';
